// What is to be known of a series of timed iterations beside its percentiles.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace epsweep {

// As ranks report it: the same on all of them but for `disturbed`, which holds where any was.
struct PassFactsOfRanks {
  std::string stop;                 // why it ended: count, precision, time or most
  std::optional<double> precision;  // half the 95 % interval of the median / the median
  std::vector<double> disturbed;    // [iterations], ranks that lost a core or whose device's clock
                                    // was held down
};

// Of samples in the order they were taken. No sample is ever left out of the other numbers.
struct PassSummary {
  PassFactsOfRanks facts;
  double disturbed_share = 0;               // of the iterations
  std::optional<double> undisturbed_p50_s;  // of the others; absent where there are none
  std::optional<double> first_over_p50;     // first sample / p50; absent below 4 samples
  std::optional<double> drift;  // p50 of the last third / of the first one; absent below 18 samples
                                // or where their 95 % intervals overlap
};

PassSummary summarize_pass(PassFactsOfRanks facts, std::span<const double> samples_s);

// Above this many p50s the first sample is called a spike.
inline constexpr double kSpikeFactor = 5;
// A drift below this is not worth a word.
inline constexpr double kDriftLimit = 0.05;

// Sentences for a reader, each beginning with `what`; samples by layer.
std::vector<std::string> pass_warnings(const std::string& what, const PassSummary& pass,
                                       std::span<const double> samples_s);

}  // namespace epsweep
