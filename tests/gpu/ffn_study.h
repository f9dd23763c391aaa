// The expert FFN of one rank on one GPU: time of every kernel at every number of rows, beside what
// the same GPU reaches with plain copies and one large product.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device/backend.h"
#include "device/grouped_gemm.h"

namespace epsweep {

struct FfnShape {
  std::int64_t hidden = 0, ffn = 0;
  int experts = 0;  // of the rank
  DType dtype = DType::bf16;
};

// Rates the device reached in this run, and so no more than what can be asked of a kernel.
struct Ceilings {
  double copy_bytes_per_s = 0;  // read and written, device to device
  // Of an 8192 x 8192 x 8192 product, cuBLASLt, random data; with fp8 its inputs are quantised
  // before and not in the time.
  double gemm_flops = 0;
};
// Throws RunError with the reason where the device has no products of the dtype.
Ceilings measure_ceilings(Backend& backend, DType dtype);

// Bytes that must move at least once: weights of experts with rows, without scales, inputs and
// outputs of the two products and of the activation, in row_dtype(). FLOPs of routed rows: 6 *
// hidden * ffn each.
struct FfnNeed {
  double bytes = 0, flops = 0;
  // Seconds at the ceilings: the larger of the two times.
  double roof_s(const Ceilings& ceilings) const;
};
FfnNeed ffn_need(const FfnShape& shape, std::int64_t rows_per_expert);

struct FfnTime {
  std::string kernel;
  std::int64_t rows_per_expert = 0;
  std::optional<double> median_s;  // absent where the kernel refused
  std::string refusal;
  std::int64_t kernel_calls = 0, computed_rows = 0;
};

// Cold weights (the last-level cache is overwritten before every repetition), both products and the
// activation, median of `repetitions`.
std::vector<FfnTime> time_kernel(Backend& backend, const FfnShape& shape, const std::string& kernel,
                                 const std::vector<std::int64_t>& rows_per_expert, int repetitions);

// One run of the kernel with warm code and cold weights inside a range of its name, for profilers.
void run_in_range(Backend& backend, const FfnShape& shape, const std::string& kernel,
                  std::int64_t rows_per_expert);

}  // namespace epsweep
