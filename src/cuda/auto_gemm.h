// A grouped GEMM that measures others on the row counts it gets and runs the best of them.
#pragma once

#include <memory>
#include <vector>

#include "device/grouped_gemm.h"

namespace epsweep::cuda {

// All candidates use one set of weights; those that are no SharedWeightsGemm are left out. warm()
// measures: every candidate once untimed, then a few times with the device's cache flushed before
// each, events around each; the median counts. One kernel is taken for all experts of a call
// (best_candidate()), each shape and vector of row counts for itself. A candidate that refuses the
// shape or fails is left out with its reason; warm() throws RunError with all reasons where none is
// left. Only the kernel that is taken keeps its memory.
std::unique_ptr<GroupedGemm> make_auto_gemm(const GemmShape& shape, int num_threads,
                                            std::vector<GroupedGemmEntry> candidates);

}  // namespace epsweep::cuda
