// The stages of one MoE layer, in execution order.
#pragma once

#include <array>
#include <string_view>

namespace epsweep {

enum class Stage : int {
  router,          // gate GEMM, scoring, top-k
  count_exchange,  // histogram of own assignments; rows per (source rank, expert) to their owners
  permute,         // own token rows gathered into send order
  dispatch,        // rows to the ranks that own their experts
  expert_ffn,      // received rows regrouped by expert, gate+up, activation, down, put back
  combine,         // expert outputs back to the tokens' ranks
  unpermute,       // weighted sum of each token's top_k rows
};

inline constexpr int kNumStages = 7;
inline constexpr std::array<std::string_view, kNumStages> kStageNames = {
    "router", "count_exchange", "permute", "dispatch", "expert_ffn", "combine", "unpermute"};

// Where a deliberate delay sits: in front of the stage's first mark, as if the rank came late, or
// behind it, as if the stage took longer.
enum class DelayPlace { before, inside };

constexpr std::string_view to_string(Stage stage) {
  return kStageNames[static_cast<std::size_t>(stage)];
}

}  // namespace epsweep
