// Operations and bytes of the expert FFN.
#pragma once

#include <cstdint>
#include <vector>

#include "base/dtype.h"
#include "plan/model_shape.h"

namespace epsweep {

// flops = 2 * routed_rows * expert_params (multiply and add; activation not counted; padding not
// counted). weight_bytes = touched_experts * expert_params * bytes of the dtype, where an expert is
// touched if it has at least one row; every replica counts by itself, as each is read where it is.
// weight_scale_bytes: expert_scale_bytes() of the same experts, beside weight_bytes.
struct FfnWork {
  std::int64_t routed_rows = 0;
  std::int64_t touched_experts = 0;
  std::int64_t flops = 0;
  std::int64_t weight_bytes = 0;
  std::int64_t weight_scale_bytes = 0;
};

FfnWork ffn_work(const ModelShape& model, DType dtype,
                 const std::vector<std::int64_t>& rows_per_slot);

// Scales of one expert's two matrices (base/fp8_scales.h): one fp32 each with fp8, one for every
// 128 x 128 weights with fp8_block128, as cuBLASLt wants them to lie; none with other dtypes.
std::int64_t expert_scale_bytes(const ModelShape& model, DType dtype);

// Weights without scales resident on each EP rank, replicas included: [ep_size], for one layer.
std::vector<std::int64_t> weight_bytes_per_rank(const ModelShape& model, DType dtype,
                                                const std::vector<std::int64_t>& slots_per_rank);

}  // namespace epsweep
