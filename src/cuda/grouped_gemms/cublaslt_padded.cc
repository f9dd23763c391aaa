// One strided batch of products, all experts padded to the rows of the largest.
#include <algorithm>

#include "cuda/cuda_lane.h"
#include "cuda/cuda_memory.h"
#include "cuda/fp8_support.h"
#include "cuda/matmul.h"
#include "cuda/quantised_inputs.h"
#include "cuda/shared_weights_gemm.h"
#include "cuda/slot_plan.h"

namespace epsweep::cuda {
namespace {

std::int64_t most_rows(std::span<const std::int64_t> rows_per_expert) {
  return rows_per_expert.empty() ? 0 : std::ranges::max(rows_per_expert);
}

// Rows are copied into padded slots and back, so that experts lie at fixed distances; both copies
// belong to what padding costs. Padding rows are left as they are: no product mixes rows. Inputs of
// fp8 are quantised into their slots instead of copied.
class CublasltPadded final : public SharedWeightsGemm {
 public:
  explicit CublasltPadded(const GemmShape& shape)
      : SharedWeightsGemm(shape),
        matmul_({.n = shape.n, .k = shape.k, .dtype = shape.dtype}),
        workspace_(library_workspace(0)),
        inputs_(shape),
        slots_(shape.num_experts) {}

  void warm(std::span<const std::int64_t> rows_per_expert) override {
    const std::int64_t most = lay_out(rows_per_expert);
    if (most == 0) return;
    matmul_.prepare(most, shape().num_experts);
    if (is_fp8(shape().dtype)) {
      inputs_.reserve(slots_.stored_rows());
    } else {
      grow_buffer(padded_x_, slots_.stored_rows() * x_row_bytes());
    }
    grow_buffer(padded_y_, slots_.stored_rows() * y_row_bytes());
  }

  GemmWork run(Lane& lane, const Buffer& x, Buffer& y,
               std::span<const std::int64_t> rows_per_expert) override {
    const std::int64_t most = lay_out(rows_per_expert);
    if (most == 0) return {};
    const cudaStream_t stream = stream_of(lane);
    matmul_.run(stream, most,
                {.x = put_into_slots(stream, x),
                 .w = weights().of(0),
                 .y = padded_y_.data(),
                 .x_scales = inputs_.scales_at(0),
                 .w_scales = weights().scales_of(0)},
                workspace_, shape().num_experts);
    for (const ExpertSlots& part : slots_.parts()) {
      out_of_slots(stream, part, y_row_bytes(), padded_y_.data(), y.data());
    }
    return {.kernel_calls = 1 + 2 * static_cast<std::int64_t>(slots_.parts().size()),
            .computed_rows = slots_.stored_rows(),
            .stored_rows = slots_.stored_rows(),
            .workspace_bytes =
                workspace_.bytes() + padded_x_.bytes() + inputs_.bytes() + padded_y_.bytes(),
            .choice = nullptr};
  }

 private:
  const void* put_into_slots(cudaStream_t stream, const Buffer& x) {
    if (is_fp8(shape().dtype)) {
      inputs_.quantise(stream, slots_, x.data());
      return inputs_.rows_at(0);
    }
    for (const ExpertSlots& part : slots_.parts()) {
      into_slots(stream, part, x_row_bytes(), x.data(), padded_x_.data());
    }
    return padded_x_.data();
  }

  // Returns the rows of every slot.
  std::int64_t lay_out(std::span<const std::int64_t> rows_per_expert) {
    const std::int64_t most = most_rows(rows_per_expert);
    slots_.lay_out(rows_per_expert, [most](std::int64_t) { return most; });
    return most;
  }

  Matmul matmul_;
  Buffer& workspace_;
  Buffer padded_x_, padded_y_;
  QuantisedInputs inputs_;
  SlotPlan slots_;
};

// One scale for a whole batch is what cuBLASLt documents; how scales of 128 would lie in one, it
// does not say.
std::optional<std::string> refuses(const GemmShape& shape) {
  if (shape.dtype == DType::fp8_block128)
    return "cuBLASLt has no place for scales of 128 in a batch";
  return refuse_cublaslt(shape);
}

std::int64_t scratch_bytes(const GemmShape& shape, std::span<const std::int64_t> rows_per_expert) {
  const std::int64_t stored = shape.num_experts * most_rows(rows_per_expert);
  if (stored == 0) return 0;
  const std::int64_t inputs =
      is_fp8(shape.dtype) ? QuantisedInputs::bytes_for(shape, stored) : stored * x_row_bytes(shape);
  return inputs + stored * y_row_bytes(shape);
}

const bool kAdded = GroupedGemmCatalog::instance().add(
    {.name = "cublaslt_padded",
     .backend = "cuda",
     .summary = "one strided cuBLASLt batch, every expert padded to the rows of the largest",
     .refuses = refuses,
     .make = [](const GemmShape& shape, int) -> std::unique_ptr<GroupedGemm> {
       return std::make_unique<CublasltPadded>(shape);
     },
     .scratch_bytes = scratch_bytes});

}  // namespace
}  // namespace epsweep::cuda
