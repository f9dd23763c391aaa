// How close an expert FFN came to what its rank can do.
#pragma once

#include <algorithm>
#include <optional>

#include "costs/ffn_work.h"

namespace epsweep {

// Of one rank; both were measured.
struct RankRates {
  double flop_per_s = 0;        // large GEMM of the dtype
  double read_bytes_per_s = 0;  // streamed
};

// What a rank needs at least: its weights at the read rate and its operations at the GEMM rate, the
// longer of which hides the other.
struct FfnTimes {
  double weight_s = 0, compute_s = 0;
  double seconds() const { return std::max(weight_s, compute_s); }
};
FfnTimes ffn_times(const FfnWork& work, const RankRates& rates);

enum class RooflineBound { memory, compute };
constexpr const char* to_string(RooflineBound bound) {
  return bound == RooflineBound::memory ? "memory" : "compute";
}

// Of one layer on one rank.
struct FfnRoofline {
  double flops = 0;  // of routed rows, padding not counted
  // Weights and scales of the experts with rows, and the rows that go in and come out. What is
  // between the two products is left out: a fused kernel need not write it.
  double weight_bytes = 0, activation_bytes = 0;
  double seconds = 0;
  RankRates rates;

  double bytes() const { return weight_bytes + activation_bytes; }
  double intensity() const { return flops / bytes(); }  // FLOP / byte
  // min(GEMM rate, bandwidth * intensity).
  double attainable_flop_per_s() const;
  double achieved_flop_per_s() const { return flops / seconds; }
  double share() const { return achieved_flop_per_s() / attainable_flop_per_s(); }
  double peak_share() const { return achieved_flop_per_s() / rates.flop_per_s; }
  RooflineBound bound() const;
};

// `work` is summed over `layers`; `seconds` are of one layer. Absent without rows or time.
std::optional<FfnRoofline> ffn_roofline(const FfnWork& work, const ModelShape& model, DType dtype,
                                        int layers, double seconds, const RankRates& rates);

}  // namespace epsweep
