// cuBLAS's grouped batch: all experts in one call, their shapes given by the host.
#include <vector>

#include "cuda/cublas_handle.h"
#include "cuda/cuda_lane.h"
#include "cuda/fp8_support.h"
#include "cuda/group_table.h"
#include "cuda/int32_limits.h"
#include "cuda/matmul.h"
#include "cuda/shared_weights_gemm.h"

namespace epsweep::cuda {
namespace {

// One group for each expert with rows: the call reads the table's pointers on the device, and the
// shapes here.
class CublasGrouped final : public SharedWeightsGemm {
 public:
  explicit CublasGrouped(const GemmShape& shape)
      : SharedWeightsGemm(shape), workspace_(library_workspace(0)), table_(shape) {
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
    table_.check(rows_per_expert);
    cublas();
  }

  GemmWork run(Lane& lane, const Buffer& x, Buffer& y,
               std::span<const std::int64_t> rows_per_expert) override {
    const cudaStream_t stream = stream_of(lane);
    const Groups groups = table_.describe(
        stream, {.x = x.data(), .w = weights().of(0), .y = y.data()}, rows_per_expert);
    if (groups.count == 0) return {};
    note_rows(rows_per_expert);
    multiply(stream, groups.count);
    return {.kernel_calls = groups.launches + 1,
            .computed_rows = groups.rows,
            .stored_rows = groups.rows,
            .workspace_bytes = workspace_.bytes() + table_.bytes(),
            .choice = nullptr};
  }

 private:
  // Of the groups, as the table has them.
  void note_rows(std::span<const std::int64_t> rows_per_expert) {
    std::size_t group = 0;
    for (const std::int64_t rows : rows_per_expert) {
      if (rows > 0) rows_[group++] = as_int32(rows, "rows of one expert");
    }
  }

  void multiply(cudaStream_t stream, int groups) {
    const cudaDataType_t type = cublas_type(shape().dtype);
    const GroupArrays& at = table_.arrays();
    check(cublasGemmGroupedBatchedEx(
              cublas_on(stream, workspace_), transposed_.data(), plain_.data(), m_.data(),
              rows_.data(), k_.data(), alpha_.data(), at.w, type, k_.data(), at.x, type, k_.data(),
              beta_.data(), at.y, type, m_.data(), groups, ones_.data(), CUBLAS_COMPUTE_32F),
          "cublasGemmGroupedBatchedEx");
  }

  Buffer& workspace_;
  GroupTable table_;
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
