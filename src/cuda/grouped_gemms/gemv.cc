// Own kernel for few rows per expert: all experts in one launch, every weight read once.
#include "cuda/kernels/gemv.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "cuda/cuda_lane.h"
#include "cuda/expert_matrices.h"

namespace epsweep::cuda {
namespace {

class Gemv final : public GroupedGemm {
 public:
  explicit Gemv(const GemmShape& shape) : shape_(shape), weights_(shape) {}

  void prepare(const WeightSource& weights) override { weights_.load(weights); }
  void warm(std::span<const std::int64_t>) override {}

  GemmWork run(Lane& lane, const Buffer& x, Buffer& y,
               std::span<const std::int64_t> rows_per_expert) override {
    GemmWork work;
    std::int64_t row = 0;
    for (int first = 0; first < shape_.num_experts; first += kGemvExperts) {
      const int count = std::min(kGemvExperts, shape_.num_experts - first);
      GemvRows rows{};
      rows.begin[0] = static_cast<std::int32_t>(row);
      for (int e = 0; e < count; ++e) {
        const std::int64_t own = rows_per_expert[static_cast<std::size_t>(first + e)];
        // The narrow side of a tensor-core product is eight rows.
        work.computed_rows += (own + 7) / 8 * 8;
        row += own;
        rows.begin[e + 1] = static_cast<std::int32_t>(row);
      }
      if (rows.begin[count] == rows.begin[0]) continue;
      gemv(stream_of(lane), rows, count, shape_.n, shape_.k, x.data(), weights_.of(first),
           y.data());
      ++work.kernel_calls;
    }
    return work;
  }

  void flush_weights() override { flush_device_cache(); }
  std::int64_t weight_bytes() const override { return weights_.bytes(); }

 private:
  GemmShape shape_;
  ExpertMatrices weights_;
};

std::optional<std::string> refuses(const GemmShape& shape) {
  if (shape.dtype != DType::bf16) return "bf16 only";
  if (shape.n % 16 == 0 && shape.k % 32 == 0) return std::nullopt;
  return fmt::format("wants outputs in multiples of 16 and inputs in multiples of 32, not {} x {}",
                     shape.n, shape.k);
}

const bool kAdded = GroupedGemmCatalog::instance().add(
    {.name = "gemv",
     .backend = "cuda",
     .summary = "own kernel for up to 16 rows per expert: one launch, weights streamed once",
     .refuses = refuses,
     .make = [](const GemmShape& shape, int) -> std::unique_ptr<GroupedGemm> {
       return std::make_unique<Gemv>(shape);
     }});

}  // namespace
}  // namespace epsweep::cuda
