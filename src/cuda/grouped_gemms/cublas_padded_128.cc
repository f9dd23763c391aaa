// Experts padded to tiles of 128 rows, as in DeepGEMM's contiguous layout: one batch of equal
// products whose weights are found through pointers. cuBLASLt has pointer arrays too, but says for
// which types only in its answers; cublasGemmBatchedEx lists bf16 and fp32.
#include "base/error.h"
#include "cuda/cublas_handle.h"
#include "cuda/cuda_lane.h"
#include "cuda/cuda_memory.h"
#include "cuda/fp8_support.h"
#include "cuda/int32_limits.h"
#include "cuda/matmul.h"
#include "cuda/shared_weights_gemm.h"
#include "cuda/slot_plan.h"

namespace epsweep::cuda {
namespace {

constexpr std::int64_t kTileRows = 128;

// Even, so that all three arrays of pointers begin at a multiple of 16 bytes.
std::int64_t pointer_capacity(std::int64_t stored_rows) {
  return in_tiles(stored_rows / kTileRows, 2);
}
std::int64_t pointer_bytes(std::int64_t stored_rows) {
  return 3 * pointer_capacity(stored_rows) * static_cast<std::int64_t>(sizeof(void*));
}

// An expert without rows takes no tile. The launch that copies rows into tiles writes the batch's
// pointers too, so nothing passes from the host but the offsets.
class CublasPadded128 final : public SharedWeightsGemm {
 public:
  explicit CublasPadded128(const GemmShape& shape)
      : SharedWeightsGemm(shape), workspace_(library_workspace(0)), slots_(shape.num_experts) {}

  void warm(std::span<const std::int64_t> rows_per_expert) override {
    lay_out(rows_per_expert);
    if (num_tiles() == 0) return;
    cublas();
    grow_buffer(padded_x_, slots_.stored_rows() * x_row_bytes());
    grow_buffer(padded_y_, slots_.stored_rows() * y_row_bytes());
    grow_buffer(pointers_, pointer_bytes(slots_.stored_rows()));
  }

  GemmWork run(Lane& lane, const Buffer& x, Buffer& y,
               std::span<const std::int64_t> rows_per_expert) override {
    lay_out(rows_per_expert);
    if (num_tiles() == 0) return {};
    EPS_EXPECT(padded_x_.bytes() >= slots_.stored_rows() * x_row_bytes(),
               "a matrix product of rows that were not prepared");
    const cudaStream_t stream = stream_of(lane);
    const BatchOperands batch = batch_operands();
    for (const ExpertSlots& part : slots_.parts()) {
      into_tiles(stream, part, x_row_bytes(), x.data(), batch);
    }
    multiply(stream, batch);
    for (const ExpertSlots& part : slots_.parts()) {
      out_of_slots(stream, part, y_row_bytes(), padded_y_.data(), y.data());
    }
    return {.kernel_calls = 1 + 2 * static_cast<std::int64_t>(slots_.parts().size()),
            .computed_rows = slots_.stored_rows(),
            .stored_rows = slots_.stored_rows(),
            .workspace_bytes =
                workspace_.bytes() + padded_x_.bytes() + padded_y_.bytes() + pointers_.bytes(),
            .choice = nullptr};
  }

 private:
  void lay_out(std::span<const std::int64_t> rows_per_expert) {
    slots_.lay_out(rows_per_expert, [](std::int64_t rows) { return in_tiles(rows, kTileRows); });
  }
  std::int64_t num_tiles() const { return slots_.stored_rows() / kTileRows; }

  BatchOperands batch_operands() {
    return {.pointers = static_cast<void**>(pointers_.data()),
            .capacity = pointer_capacity(slots_.stored_rows()),
            .tile_rows = kTileRows,
            .w = const_cast<void*>(weights().of(0)),
            .x = padded_x_.data(),
            .y = padded_y_.data(),
            .w_bytes = shape().n * x_row_bytes(),
            .x_bytes = kTileRows * x_row_bytes(),
            .y_bytes = kTileRows * y_row_bytes()};
  }

  // In cuBLAS's column-major words as in matmul.h: y^T (n x 128) = w^T (k x n) * x^T (k x 128).
  void multiply(cudaStream_t stream, const BatchOperands& batch) {
    const cudaDataType_t type = cublas_type(shape().dtype);
    const int n = as_int32(shape().n, "outputs"), k = as_int32(shape().k, "inputs");
    const float one = 1, zero = 0;
    check(cublasGemmBatchedEx(cublas_on(stream, workspace_), CUBLAS_OP_T, CUBLAS_OP_N, n,
                              static_cast<int>(kTileRows), k, &one, batch.pointers, type, k,
                              batch.pointers + batch.capacity, type, k, &zero,
                              batch.pointers + 2 * batch.capacity, type, n,
                              as_int32(num_tiles(), "tiles of 128 rows"), CUBLAS_COMPUTE_32F,
                              CUBLAS_GEMM_DEFAULT),
          "cublasGemmBatchedEx");
  }

  Buffer& workspace_;
  Buffer padded_x_, padded_y_, pointers_;
  SlotPlan slots_;
};

std::int64_t scratch_bytes(const GemmShape& shape, std::span<const std::int64_t> rows_per_expert) {
  std::int64_t stored = 0;
  for (const std::int64_t rows : rows_per_expert) stored += in_tiles(rows, kTileRows);
  return stored * (x_row_bytes(shape) + y_row_bytes(shape)) + pointer_bytes(stored);
}

const bool kAdded = GroupedGemmCatalog::instance().add(
    {.name = "cublas_padded_128",
     .backend = "cuda",
     .summary = "one cuBLAS batch of 128-row tiles, every expert padded to whole tiles",
     .refuses = refuse_cublas,
     .make = [](const GemmShape& shape, int) -> std::unique_ptr<GroupedGemm> {
       return std::make_unique<CublasPadded128>(shape);
     },
     .scratch_bytes = scratch_bytes});

}  // namespace
}  // namespace epsweep::cuda
