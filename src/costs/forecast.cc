#include "costs/forecast.h"

#include <cmath>

namespace epsweep {

TimeForecast forecast_of(double seconds, double doublings, const ErrorPerDoubling& error) {
  return {.seconds = seconds,
          .low_s = seconds * std::pow(1 - error.below, doublings),
          .high_s = seconds * std::pow(1 + error.above, doublings),
          .doublings = doublings};
}

double doublings_outside(double value, double low, double high) {
  if (value > high) return std::log2(value / high);
  return value < low ? std::log2(low / value) : 0;
}

}  // namespace epsweep
