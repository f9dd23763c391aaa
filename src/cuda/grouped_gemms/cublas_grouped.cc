// cuBLAS's grouped batch: all experts in one call, their shapes given by the host.
#include <algorithm>
#include <vector>

#include <cublas_v2.h>

#include "cuda/cuda_lane.h"
#include "cuda/cuda_memory.h"
#include "cuda/expert_matrices.h"
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

// One group for each expert with rows. The pointers lie on the device and are copied there in every
// run, as the rows they point to depend on the routing.
class CublasGrouped final : public GroupedGemm {
 public:
  explicit CublasGrouped(const GemmShape& shape)
      : shape_(shape), weights_(shape), pointers_(make_pinned_buffer(3 * experts() * kPointer)) {
    const std::size_t count = static_cast<std::size_t>(experts());
    device_pointers_ = make_device_buffer(3 * experts() * kPointer);
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
    const GemmWork work = point_at_rows(x, y, rows_per_expert);
    if (groups_ == 0) return work;
    EPS_CUDA(cudaMemcpyAsync(device_pointers_.data(), pointers_.data(),
                             static_cast<std::size_t>(pointers_.bytes()), cudaMemcpyHostToDevice,
                             stream));
    const cudaDataType_t type = shape_.dtype == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F;
    auto* device = static_cast<void**>(device_pointers_.data());
    check(cublasSetStream(cublas(), stream), "cublasSetStream");
    check(cublasGemmGroupedBatchedEx(cublas(), transposed_.data(), plain_.data(), m_.data(),
                                     rows_.data(), k_.data(), alpha_.data(), device, type,
                                     k_.data(), device + experts(), type, k_.data(), beta_.data(),
                                     device + 2 * experts(), type, m_.data(), groups_, ones_.data(),
                                     CUBLAS_COMPUTE_32F),
          "cublasGemmGroupedBatchedEx");
    return work;
  }

  void flush_weights() override { flush_device_cache(); }
  std::int64_t weight_bytes() const override { return weights_.bytes(); }

 private:
  static constexpr auto kPointer = static_cast<std::int64_t>(sizeof(void*));

  std::int64_t experts() const { return shape_.num_experts; }

  // Fills the pointers to weights, inputs and outputs, and the rows, of experts that have any.
  GemmWork point_at_rows(const Buffer& x, Buffer& y,
                         std::span<const std::int64_t> rows_per_expert) {
    GemmWork work;
    groups_ = 0;
    const std::int64_t element = bytes_of(shape_.dtype);
    const auto pointers = pointers_.as<const void*>();
    std::int64_t row = 0;
    for (std::int64_t expert = 0; expert < experts(); ++expert) {
      const std::int64_t rows = rows_per_expert[static_cast<std::size_t>(expert)];
      if (rows == 0) continue;
      const auto group = static_cast<std::size_t>(groups_++);
      const auto stride = static_cast<std::size_t>(experts());
      pointers[group] = weights_.of(static_cast<int>(expert));
      pointers[group + stride] = static_cast<const std::byte*>(x.data()) + row * shape_.k * element;
      pointers[group + 2 * stride] = static_cast<std::byte*>(y.data()) + row * shape_.n * element;
      rows_[group] = static_cast<int>(rows);
      row += rows;
    }
    work.computed_rows = row;
    work.kernel_calls = groups_ > 0 ? 1 : 0;
    return work;
  }

  GemmShape shape_;
  ExpertMatrices weights_;
  // Page-locked, so that the copy to the device does not wait for the host.
  Buffer pointers_, device_pointers_;
  std::vector<cublasOperation_t> transposed_, plain_;
  std::vector<int> m_, rows_, k_, ones_;
  std::vector<float> alpha_, beta_;
  int groups_ = 0;
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
