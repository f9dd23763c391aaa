// How fast a rank multiplies large matrices with the kernels it has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "ceilings/ranks_together.h"
#include "device/backend.h"

namespace epsweep {

// The best that was seen of one rank, while all the others measured too.
struct GemmRate {
  double flop_per_s = 0;  // 2 * size^3 / time
  std::string kernel;     // of the GroupedGemm catalog
  std::int64_t size = 0;  // m = n = k
};

// Every one of the kernels multiplies one expert's square matrices of 256, 512, ... 8192 rows, the
// weights warm, three times each and best counted, as long as the next size promises to stay within
// `budget_s` for a kernel and takes at most an eighth of the rank's memory. The best of all is the
// ceiling: a kernel is not its own measure. With fp8 quantising the inputs is in the time, as it is
// in a layer's. Absent where no kernel can. Collective over the ranks, which go through the same
// sizes.
std::optional<GemmRate> probe_gemm(Backend& backend, const std::vector<std::string>& kernels,
                                   DType dtype, double budget_s, const RanksTogether& ranks);

}  // namespace epsweep
