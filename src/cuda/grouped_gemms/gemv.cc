// Own kernel for few rows per expert: all experts in one launch, every weight read once.
#include "cuda/kernels/gemv.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "cuda/cuda_lane.h"
#include "cuda/int32_limits.h"
#include "cuda/shared_weights_gemm.h"

namespace epsweep::cuda {
namespace {

class Gemv final : public SharedWeightsGemm {
 public:
  explicit Gemv(const GemmShape& shape) : SharedWeightsGemm(shape) {}

  void warm(std::span<const std::int64_t> rows_per_expert) override {
    // A block steps past the last row by less than one pass.
    const std::int64_t rows =
        std::accumulate(rows_per_expert.begin(), rows_per_expert.end(), std::int64_t{kGemvRows});
    as_int32(rows, kRows);
  }

  GemmWork run(Lane& lane, const Buffer& x, Buffer& y,
               std::span<const std::int64_t> rows_per_expert) override {
    GemmWork work;
    std::int64_t row = 0;
    for (int first = 0; first < shape().num_experts; first += kGemvExperts) {
      const int count = std::min(kGemvExperts, shape().num_experts - first);
      GemvRows rows{};
      rows.begin[0] = as_int32(row, kRows);
      for (int e = 0; e < count; ++e) {
        const std::int64_t own = rows_per_expert[static_cast<std::size_t>(first + e)];
        // The narrow side of a tensor-core product is eight rows.
        work.computed_rows += (own + 7) / 8 * 8;
        row += own;
        rows.begin[e + 1] = as_int32(row, kRows);
      }
      if (rows.begin[count] == rows.begin[0]) continue;
      gemv(stream_of(lane), rows, count, shape().n, shape().k, x.data(), weights().of(first),
           y.data());
      ++work.kernel_calls;
    }
    work.stored_rows = row;
    return work;
  }

 private:
  static constexpr auto kRows = "rows of all experts";
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
     .summary = "own kernel: one launch, weights streamed once for every 16 rows of an expert",
     .refuses = refuses,
     .make = [](const GemmShape& shape, int) -> std::unique_ptr<GroupedGemm> {
       return std::make_unique<Gemv>(shape);
     }});

}  // namespace
}  // namespace epsweep::cuda
