#include "cuda/cutlass_choice.h"

#include <fmt/format.h>

namespace epsweep::cuda {

std::int64_t token_tiles(std::span<const std::int64_t> rows_per_expert, std::int64_t tokens) {
  std::int64_t tiles = 0;
  for (const std::int64_t rows : rows_per_expert) tiles += (rows + tokens - 1) / tokens;
  return tiles;
}

CutlassRows cutlass_rows(std::span<const std::int64_t> rows_per_expert) {
  const std::int64_t few = token_tiles(rows_per_expert, kFewTokens);
  const std::int64_t many = token_tiles(rows_per_expert, kManyTokens);
  return 4 * few <= 5 * many ? CutlassRows::few : CutlassRows::many;
}

std::optional<std::string> refuse_all_but_hopper(int compute_capability) {
  if (compute_capability == 90) return std::nullopt;
  return fmt::format("wants compute capability 9.0 (H100, H200, H20, GH200), this device has {}.{}",
                     compute_capability / 10, compute_capability % 10);
}

}  // namespace epsweep::cuda
