// Which of CUTLASS's tiles a call uses.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace epsweep::cuda {

enum class CutlassRows { few, many };

// Columns of the two tiles: tokens of an expert that share one reading of its weights.
inline constexpr std::int64_t kFewTokens = 16, kManyTokens = 128;

// Tiles of `tokens` columns that the experts' rows fill, each of which reads the expert's weights.
std::int64_t token_tiles(std::span<const std::int64_t> rows_per_expert, std::int64_t tokens);

// `few` as long as its tiles read weights at most a quarter more often than those of `many`:
// reading them again mostly hits the cache, which is faster than memory, but not by much more. An
// estimate: no device was at hand.
CutlassRows cutlass_rows(std::span<const std::int64_t> rows_per_expert);

// The reason why not, or nothing: the kernels are compiled for compute capability 9.0 (90) and use
// instructions that no other has.
std::optional<std::string> refuse_all_but_hopper(int compute_capability);

}  // namespace epsweep::cuda
