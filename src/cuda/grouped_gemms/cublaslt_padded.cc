// One strided batch of products, all experts padded to the rows of the largest.
#include <algorithm>

#include "cuda/cuda_lane.h"
#include "cuda/cuda_memory.h"
#include "cuda/expert_matrices.h"
#include "cuda/matmul.h"

namespace epsweep::cuda {
namespace {

// Rows are copied into padded slots and back, so that experts lie at fixed distances; both copies
// belong to what padding costs. Padding rows are left as they are: no product mixes rows.
class CublasltPadded final : public GroupedGemm {
 public:
  explicit CublasltPadded(const GemmShape& shape)
      : shape_(shape),
        weights_(shape),
        matmul_({.n = shape.n, .k = shape.k, .dtype = shape.dtype}),
        workspace_(make_device_buffer(kMatmulWorkspaceBytes)) {}

  void prepare(const WeightSource& weights) override { weights_.load(weights); }

  void warm(std::span<const std::int64_t> rows_per_expert) override {
    const std::int64_t rows = padded_rows(rows_per_expert);
    if (rows == 0) return;
    matmul_.prepare(rows, shape_.num_experts);
    grow(padded_x_, rows * row_bytes(shape_.k));
    grow(padded_y_, rows * row_bytes(shape_.n));
  }

  GemmWork run(Lane& lane, const Buffer& x, Buffer& y,
               std::span<const std::int64_t> rows_per_expert) override {
    const std::int64_t rows = padded_rows(rows_per_expert);
    if (rows == 0) return {};
    const cudaStream_t stream = stream_of(lane);
    copy_slots(stream, rows_per_expert, rows, {x.data(), padded_x_.data(), row_bytes(shape_.k)},
               Way::into_slots);
    matmul_.run(stream, rows, {.x = padded_x_.data(), .w = weights_.of(0), .y = padded_y_.data()},
                workspace_, shape_.num_experts);
    copy_slots(stream, rows_per_expert, rows, {padded_y_.data(), y.data(), row_bytes(shape_.n)},
               Way::out_of_slots);
    return {.kernel_calls = 1, .computed_rows = rows * shape_.num_experts};
  }

  void flush_weights() override { flush_device_cache(); }
  std::int64_t weight_bytes() const override { return weights_.bytes(); }

 private:
  enum class Way { into_slots, out_of_slots };
  struct Copy {
    const void* from;
    void* to;
    std::int64_t row_bytes;
  };

  std::int64_t padded_rows(std::span<const std::int64_t> rows_per_expert) const {
    return rows_per_expert.empty() ? 0 : std::ranges::max(rows_per_expert);
  }
  std::int64_t row_bytes(std::int64_t cols) const { return cols * bytes_of(shape_.dtype); }
  // Of all experts' slots.
  void grow(Buffer& buffer, std::int64_t bytes_of_slot) {
    const std::int64_t bytes = bytes_of_slot * shape_.num_experts;
    if (buffer.bytes() < bytes) buffer = make_device_buffer(bytes);
  }

  void copy_slots(cudaStream_t stream, std::span<const std::int64_t> rows_per_expert,
                  std::int64_t padded, const Copy& copy, Way way) const {
    std::int64_t packed = 0, slot = 0;
    for (const std::int64_t rows : rows_per_expert) {
      const std::int64_t from = way == Way::into_slots ? packed : slot;
      const std::int64_t to = way == Way::into_slots ? slot : packed;
      if (rows > 0) {
        EPS_CUDA(cudaMemcpyAsync(static_cast<std::byte*>(copy.to) + to * copy.row_bytes,
                                 static_cast<const std::byte*>(copy.from) + from * copy.row_bytes,
                                 static_cast<std::size_t>(rows * copy.row_bytes),
                                 cudaMemcpyDeviceToDevice, stream));
      }
      packed += rows;
      slot += padded;
    }
  }

  GemmShape shape_;
  ExpertMatrices weights_;
  Matmul matmul_;
  Buffer workspace_, padded_x_, padded_y_;
};

const bool kAdded = GroupedGemmCatalog::instance().add(
    {.name = "cublaslt_padded",
     .backend = "cuda",
     .summary = "one strided cuBLASLt batch, every expert padded to the rows of the largest",
     .refuses = refuse_narrow_rows,
     .make = [](const GemmShape& shape, int) -> std::unique_ptr<GroupedGemm> {
       return std::make_unique<CublasltPadded>(shape);
     }});

}  // namespace
}  // namespace epsweep::cuda
