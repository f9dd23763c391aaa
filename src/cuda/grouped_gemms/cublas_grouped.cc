// cuBLAS's grouped batch: all experts in one call, their shapes given by the host.
#include <algorithm>
#include <vector>

#include "cuda/cublas_handle.h"
#include "cuda/cuda_lane.h"
#include "cuda/cuda_memory.h"
#include "cuda/int32_limits.h"
#include "cuda/matmul.h"
#include "cuda/shared_weights_gemm.h"

namespace epsweep::cuda {
namespace {

// One group for each expert with rows. The pointers lie on the device and are copied there in every
// run, as the rows they point to depend on the routing.
class CublasGrouped final : public SharedWeightsGemm {
 public:
  explicit CublasGrouped(const GemmShape& shape)
      : SharedWeightsGemm(shape),
        workspace_(make_device_buffer(kMatmulWorkspaceBytes)),
        pointers_(make_pinned_buffer(3 * experts() * kPointer)),
        device_pointers_(make_device_buffer(3 * experts() * kPointer)) {
    const std::size_t count = static_cast<std::size_t>(experts());
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
    for (const std::int64_t rows : rows_per_expert) as_int32(rows, kRowsOfExpert);
    cublas();
  }

  GemmWork run(Lane& lane, const Buffer& x, Buffer& y,
               std::span<const std::int64_t> rows_per_expert) override {
    const cudaStream_t stream = stream_of(lane);
    const GemmWork work = point_at_rows(x, y, rows_per_expert);
    if (groups_ == 0) return work;
    EPS_CUDA(cudaMemcpyAsync(device_pointers_.data(), pointers_.data(),
                             static_cast<std::size_t>(pointers_.bytes()), cudaMemcpyHostToDevice,
                             stream));
    const cudaDataType_t type = cublas_type(shape().dtype);
    auto* device = static_cast<void**>(device_pointers_.data());
    check(cublasGemmGroupedBatchedEx(cublas_on(stream, workspace_), transposed_.data(),
                                     plain_.data(), m_.data(), rows_.data(), k_.data(),
                                     alpha_.data(), device, type, k_.data(), device + experts(),
                                     type, k_.data(), beta_.data(), device + 2 * experts(), type,
                                     m_.data(), groups_, ones_.data(), CUBLAS_COMPUTE_32F),
          "cublasGemmGroupedBatchedEx");
    return work;
  }

 private:
  static constexpr auto kPointer = static_cast<std::int64_t>(sizeof(void*));

  static constexpr auto kRowsOfExpert = "rows of one expert";

  std::int64_t experts() const { return shape().num_experts; }

  // Fills the pointers to weights, inputs and outputs, and the rows, of experts that have any.
  GemmWork point_at_rows(const Buffer& x, Buffer& y,
                         std::span<const std::int64_t> rows_per_expert) {
    GemmWork work;
    groups_ = 0;
    const auto pointers = pointers_.as<const void*>();
    std::int64_t row = 0;
    for (std::int64_t expert = 0; expert < experts(); ++expert) {
      const std::int64_t rows = rows_per_expert[static_cast<std::size_t>(expert)];
      if (rows == 0) continue;
      const auto group = static_cast<std::size_t>(groups_++);
      const auto stride = static_cast<std::size_t>(experts());
      pointers[group] = weights().of(static_cast<int>(expert));
      pointers[group + stride] = static_cast<const std::byte*>(x.data()) + row * x_row_bytes();
      pointers[group + 2 * stride] = static_cast<std::byte*>(y.data()) + row * y_row_bytes();
      rows_[group] = as_int32(rows, kRowsOfExpert);
      row += rows;
    }
    work.computed_rows = work.stored_rows = row;
    work.kernel_calls = groups_ > 0 ? 2 : 0;  // the copy of the pointers, and the products
    work.workspace_bytes = workspace_.bytes() + device_pointers_.bytes();
    return work;
  }

  Buffer workspace_;
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
