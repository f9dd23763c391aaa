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
  // A lost, doubled or swapped assignment moves a row by its router weight, 0.1 rms and more.
  static double tolerance(DType dtype) { return dtype == DType::bf16 ? 0.04 : 1e-4; }

  // out: fp32 [own tokens][expert_io_dim]. Expected rows are computed at the first call of a layer
  // and kept.
  OracleResult check(int layer, std::span<const float> out);

 private:
  const RankWork& work_;
  // [layers][checked tokens][expert_io_dim]; empty until needed.
  std::vector<std::vector<double>> expected_;
};

// Rows expected for the given tokens of one layer: [tokens][expert_io_dim]. The placement matters
// to exchange unit `rank` only, whose partial sums are rounded rank by rank.
std::vector<double> expected_rows(const SweepPoint& point, int layer, const Trace& trace,
                                  const Placement& placement, std::span<const std::int64_t> tokens);

// Router weights of one token's chosen experts in double precision: [top_k].
std::vector<double> expected_router_weights(const SweepPoint& point, int layer, const Trace& trace,
                                            std::int64_t token);

}  // namespace epsweep
