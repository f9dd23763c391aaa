#include "costs/ffn_work.h"

#include "base/fp8_scales.h"

namespace epsweep {

FfnWork ffn_work(const ModelShape& model, DType dtype,
                 const std::vector<std::int64_t>& rows_per_slot) {
  FfnWork work;
  for (const std::int64_t rows : rows_per_slot) {
    work.routed_rows += rows;
    if (rows > 0) ++work.touched_experts;
  }
  work.flops = 2 * work.routed_rows * model.expert_params();
  work.weight_bytes = work.touched_experts * model.expert_params() * bytes_of(dtype);
  work.weight_scale_bytes = work.touched_experts * expert_scale_bytes(model, dtype);
  return work;
}

std::int64_t expert_scale_bytes(const ModelShape& model, DType dtype) {
  constexpr std::int64_t kScaleBytes = sizeof(float);
  if (dtype == DType::fp8) return 2 * kScaleBytes;
  if (dtype != DType::fp8_block128) return 0;
  return kScaleBytes * (weight_scales(model.gate_up_cols(), model.expert_io_dim) +
                        weight_scales(model.expert_io_dim, model.ffn_dim));
}

std::vector<std::int64_t> weight_bytes_per_rank(const ModelShape& model, DType dtype,
                                                const std::vector<std::int64_t>& slots_per_rank) {
  std::vector<std::int64_t> bytes;
  for (const std::int64_t slots : slots_per_rank) {
    bytes.push_back(slots * model.expert_params() * bytes_of(dtype));
  }
  return bytes;
}

}  // namespace epsweep
