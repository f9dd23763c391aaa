// A straight line through the times of bare exchanges.
#pragma once

#include <optional>
#include <span>

namespace epsweep {

// Seconds of an exchange in which every rank sends that many bytes to others.
struct ExchangeSample {
  double remote_bytes = 0;  // of a rank, all peers together
  double seconds = 0;
};

// seconds = alpha_s + remote_bytes / beta_bytes_per_s.
struct ExchangeLine {
  double alpha_s = 0;  // not negative
  double beta_bytes_per_s = 0;

  double predict_s(double remote_bytes) const { return alpha_s + remote_bytes / beta_bytes_per_s; }
};

// Least squares of the relative errors (predicted - measured) / measured, so that small exchanges
// count as much as large ones; where that wants a negative alpha, the best line through zero.
// Absent for fewer than two different sizes, times that are not positive, or times that do not grow
// with the bytes.
std::optional<ExchangeLine> fit_exchange(std::span<const ExchangeSample> samples);

}  // namespace epsweep
