#include "costs/ffn_work.h"

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
  return work;
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
