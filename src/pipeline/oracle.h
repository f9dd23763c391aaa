// The check that can fail: what the layer must have produced for a sample of own tokens, computed
// without communication from regenerated tokens and weights.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pipeline/rank_work.h"

namespace epsweep {

struct OracleResult {
  std::int64_t num_tokens_checked = 0;  // recomputed in full
  std::int64_t num_tokens_scanned = 0;  // searched for values that were never written
  // max over checked tokens and columns of |got - want| / rms(want row)
  double worst_error = 0;
  std::optional<std::string> problem;     // the first one found; absent if all is well
  std::optional<std::string> unfinished;  // why the check could not be carried out

  bool passed() const { return !problem && !unfinished; }
  void merge(const OracleResult& other);
};

class Oracle {
 public:
  explicit Oracle(const RankWork& work) : work_(work), expected_(work.traces.size()) {}

  // Bound on OracleResult::worst_error. The oracle rounds to the dtype where the layer does and
  // accumulates more precisely; a kernel's fp32 accumulation in another order can then move a value
  // to the neighbouring number of the dtype. bf16: neighbours are 2^-7 of the value apart at most,
  // and the largest of a row's values is about 4 rms, hence 4 * 2^-7 = 0.03, with a margin 0.04.
  // With exchange unit `rank` a partial sum that moves so may be rounded to its neighbour once
  // more, which the margin does not promise to cover for every column; 0.009 is the most seen.
  // fp32: the rounding errors of sums of up to 10^4 terms stay below 1e-5 of the rms; 1e-4.
  // fp8 and fp8_block128: a gate or up value that moves to a neighbouring bf16 number can move an
  // activated value across a rounding boundary of e4m3, whose numbers are 1/16 to 1/8 apart. One
  // such input changes an output by at most sqrt(3) / 8 of its share of the row's rms. How many
  // there are follows from the sums: tensor cores keep about 14 bits of them (Hopper's, by the
  // report on DeepSeek-V3, section 3.3.2), with scales of 128 for 128 inputs, with fast
  // accumulation for all. Sums of 14 bits over 7168 and 2048 inputs, emulated: gate and up values
  // are off by up to 0.016 rms, 5 % of the activated values become another number, outputs are off
  // by 0.015 rms and 0.068 at the worst of 8192; with 13 bits by 0.086. fp8: 0.2. Added up in fp32
  // every 128 inputs: 0.5 % become another, 0.003 rms, 0.021 at the worst. fp8_block128: 0.1. A
  // lost, doubled or swapped assignment moves a row by its router weight, 0.1 rms and more, and its
  // worst column by 3 to 4 times that.
  static double tolerance(DType dtype) {
    switch (dtype) {
      case DType::bf16:
        return 0.04;
      case DType::fp32:
        return 1e-4;
      case DType::fp8:
        return 0.2;
      case DType::fp8_block128:
        break;
    }
    return 0.1;
  }

  // out: fp32 [own tokens][expert_io_dim]. Expected rows are computed at the first call of a
  // routing and kept.
  OracleResult check(int routing, std::span<const float> out);

 private:
  const RankWork& work_;
  // [routings][checked tokens][expert_io_dim]; empty until needed.
  std::vector<std::vector<double>> expected_;
};

// Rows expected for the given tokens of one layer at the point's step: [tokens][expert_io_dim]. The
// placement matters to exchange unit `rank` only, whose partial sums are rounded rank by rank.
std::vector<double> expected_rows(const SweepPoint& point, int layer, const Trace& trace,
                                  const Placement& placement, std::span<const std::int64_t> tokens);

// Router weights of one token's chosen experts in double precision: [top_k].
std::vector<double> expected_router_weights(const SweepPoint& point, int layer, const Trace& trace,
                                            std::int64_t token);

}  // namespace epsweep
