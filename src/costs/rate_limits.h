// Rates that cannot be: above what was measured or declared.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace epsweep {

// What a measured ceiling may be exceeded by: two measurements of the same thing differ by this
// much on a quiet machine. A declared peak may not be exceeded at all.
inline constexpr double kMeasuredAllowance = 0.10;

enum class LimitSource { measured, declared };

// Something a point would have achieved, and what nothing can go beyond.
struct RateClaim {
  std::string what;  // "expert_ffn of rank 3 computes"
  double rate = 0;
  double limit = 0;
  std::string limit_name;  // "the GEMM ceiling of its host"
  std::string unit;        // of both, before "/s"
  LimitSource source = LimitSource::measured;

  bool impossible() const {
    return rate > limit * (source == LimitSource::measured ? 1 + kMeasuredAllowance : 1);
  }
};

// The one that is furthest beyond its limit; absent if none is.
std::optional<RateClaim> worst_impossible(const std::vector<RateClaim>& claims);

// "expert_ffn of rank 3 computes 1.2 TFLOP/s, above the 1 TFLOP/s of ..., by more than the 10 %
// that measurements may differ by".
std::string impossible_text(const RateClaim& claim);
// What makes the state, for readers of a run.
std::string impossible_formula();

}  // namespace epsweep
