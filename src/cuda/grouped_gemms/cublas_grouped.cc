// cuBLAS's grouped batch: all experts in one call, their shapes given by the host.
#include <vector>

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

// One group for each expert with rows. The pointers lie on the device and are written there in
// every run, as the rows they point to depend on the routing.
class CublasGrouped final : public SharedWeightsGemm {
 public:
  explicit CublasGrouped(const GemmShape& shape)
      : SharedWeightsGemm(shape),
        workspace_(library_workspace(0)),
        pointers_(make_device_buffer(3 * capacity() * static_cast<std::int64_t>(sizeof(void*)))),
        slots_(shape.num_experts) {
    const auto count = static_cast<std::size_t>(shape.num_experts);
    transposed_.assign(count, CUBLAS_OP_T);
    plain_.assign(count, CUBLAS_OP_N);
    m_.assign(count, as_int32(shape.n, "outputs"));
    k_.assign(count, as_int32(shape.k, "inputs"));
    rows_.resize(count);
    ones_.assign(count, 1);
    alpha_.assign(count, 1.0F);
    beta_.assign(count, 0.0F);
  }

  void warm(std::span<const std::int64_t> rows_per_expert) override {
    number_groups(rows_per_expert);
    cublas();
  }

  GemmWork run(Lane& lane, const Buffer& x, Buffer& y,
               std::span<const std::int64_t> rows_per_expert) override {
    const int groups = number_groups(rows_per_expert);
    if (groups == 0) return {};
    const cudaStream_t stream = stream_of(lane);
    const BatchOperands operands{.pointers = static_cast<void**>(pointers_.data()),
                                 .capacity = capacity(),
                                 .tile_rows = 0,
                                 .w = const_cast<void*>(weights().of(0)),
                                 .x = const_cast<void*>(x.data()),
                                 .y = y.data(),
                                 .w_bytes = shape().n * x_row_bytes(),
                                 .x_bytes = x_row_bytes(),
                                 .y_bytes = y_row_bytes()};
    for (const ExpertSlots& part : slots_.parts()) point_at_experts(stream, part, operands);
    multiply(stream, operands, groups);
    return {.kernel_calls = 1 + static_cast<std::int64_t>(slots_.parts().size()),
            .computed_rows = slots_.rows(),
            .stored_rows = slots_.rows(),
            .workspace_bytes = workspace_.bytes() + pointers_.bytes(),
            .choice = nullptr};
  }

 private:
  // Even, so that all three arrays of pointers begin at a multiple of 16 bytes.
  std::int64_t capacity() const { return in_tiles(shape().num_experts, 2); }

  // Notes the rows of experts that have any, and returns their number.
  int number_groups(std::span<const std::int64_t> rows_per_expert) {
    slots_.lay_out(rows_per_expert,
                   [](std::int64_t rows) { return std::int64_t{rows > 0 ? 1 : 0}; });
    std::size_t group = 0;
    for (const std::int64_t rows : rows_per_expert) {
      if (rows > 0) rows_[group++] = as_int32(rows, "rows of one expert");
    }
    return static_cast<int>(group);
  }

  void multiply(cudaStream_t stream, const BatchOperands& operands, int groups) {
    const cudaDataType_t type = cublas_type(shape().dtype);
    void** w = operands.pointers;
    check(cublasGemmGroupedBatchedEx(cublas_on(stream, workspace_), transposed_.data(),
                                     plain_.data(), m_.data(), rows_.data(), k_.data(),
                                     alpha_.data(), w, type, k_.data(), w + capacity(), type,
                                     k_.data(), beta_.data(), w + 2 * capacity(), type, m_.data(),
                                     groups, ones_.data(), CUBLAS_COMPUTE_32F),
          "cublasGemmGroupedBatchedEx");
  }

  Buffer& workspace_;
  Buffer pointers_;
  SlotPlan slots_;
  std::vector<cublasOperation_t> transposed_, plain_;
  std::vector<int> m_, rows_, k_, ones_;
  std::vector<float> alpha_, beta_;
};

const bool kAdded = GroupedGemmCatalog::instance().add(
    {.name = "cublas_grouped",
     .backend = "cuda",
     .summary = "cublasGemmGroupedBatchedEx: one call, shapes from the host",
     .refuses = refuse_cublas,
     .make = [](const GemmShape& shape, int) -> std::unique_ptr<GroupedGemm> {
       return std::make_unique<CublasGrouped>(shape);
     }});

}  // namespace
}  // namespace epsweep::cuda
