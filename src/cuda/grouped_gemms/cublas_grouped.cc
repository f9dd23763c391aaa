// cuBLAS's grouped batch: all experts in one call, their shapes given by the host.
#include <vector>

#include <cublas_v2.h>

#include "cuda/cuda_lane.h"
#include "cuda/expert_matrices.h"
#include "cuda/group_table.h"
#include "cuda/matmul.h"

namespace epsweep::cuda {
namespace {

cublasHandle_t cublas() {
  static const cublasHandle_t handle = [] {
    cublasHandle_t made = nullptr;
    check(cublasCreate(&made), "cublasCreate");
    return made;
  }();
  return handle;
}

// One group for each expert with rows. Their shapes are the host's; the pointers lie on the device,
// where a kernel writes them in every run, as the rows they point to depend on the routing.
class CublasGrouped final : public GroupedGemm {
 public:
  explicit CublasGrouped(const GemmShape& shape) : shape_(shape), weights_(shape), table_(shape) {
    const auto count = static_cast<std::size_t>(shape.num_experts);
    transposed_.assign(count, CUBLAS_OP_T);
    plain_.assign(count, CUBLAS_OP_N);
    m_.assign(count, static_cast<int>(shape.n));
    k_.assign(count, static_cast<int>(shape.k));
    rows_.resize(count);
    ones_.assign(count, 1);
    alpha_.assign(count, 1.0F);
    beta_.assign(count, 0.0F);
  }

  void prepare(const WeightSource& weights) override { weights_.load(weights); }
  void warm(std::span<const std::int64_t>) override { cublas(); }

  GemmWork run(Lane& lane, const Buffer& x, Buffer& y,
               std::span<const std::int64_t> rows_per_expert) override {
    const cudaStream_t stream = stream_of(lane);
    const int groups = table_.describe(stream, {.x = x.data(), .w = weights_.of(0), .y = y.data()},
                                       rows_per_expert);
    if (groups == 0) return {};
    const std::int64_t rows = pack_rows(rows_per_expert);
    const cudaDataType_t type = shape_.dtype == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F;
    const GroupArrays& at = table_.arrays();
    check(cublasSetStream(cublas(), stream), "cublasSetStream");
    check(cublasGemmGroupedBatchedEx(cublas(), transposed_.data(), plain_.data(), m_.data(),
                                     rows_.data(), k_.data(), alpha_.data(), at.w, type, k_.data(),
                                     at.x, type, k_.data(), beta_.data(), at.y, type, m_.data(),
                                     groups, ones_.data(), CUBLAS_COMPUTE_32F),
          "cublasGemmGroupedBatchedEx");
    return {.kernel_calls = 1, .computed_rows = rows};
  }

  void flush_weights() override { flush_device_cache(); }
  std::int64_t weight_bytes() const override { return weights_.bytes(); }

 private:
  // Leaves out what has none, and returns all there are.
  std::int64_t pack_rows(std::span<const std::int64_t> rows_per_expert) {
    std::int64_t total = 0;
    auto to = rows_.begin();
    for (const std::int64_t rows : rows_per_expert) {
      if (rows > 0) *to++ = static_cast<int>(rows);
      total += rows;
    }
    return total;
  }

  GemmShape shape_;
  ExpertMatrices weights_;
  GroupTable table_;
  std::vector<cublasOperation_t> transposed_, plain_;
  std::vector<int> m_, rows_, k_, ones_;
  std::vector<float> alpha_, beta_;
};

const bool kAdded = GroupedGemmCatalog::instance().add(
    {.name = "cublas_grouped",
     .backend = "cuda",
     .summary = "cublasGemmGroupedBatchedEx: one call, shapes from the host",
     .refuses = refuse_narrow_rows,
     .make = [](const GemmShape& shape, int) -> std::unique_ptr<GroupedGemm> {
       return std::make_unique<CublasGrouped>(shape);
     }});

}  // namespace
}  // namespace epsweep::cuda
