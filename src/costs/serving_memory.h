// What a rank of a deployment holds, how much is left for the KV cache, and which load that
// admits. Of the whole model, unlike costs/memory.h, which is what this program itself allocates.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "costs/kv.h"
#include "plan/ladder.h"
#include "plan/sweep_point.h"

namespace epsweep {

// Of the rank with most slots and most tokens. With T its tokens of one step, C of the group, k =
// top_k, IO = expert_io_dim and activations in bf16:
//   expert weights    slots of the rank * parameters of an expert * num_moe_layers, redundant slots
//                     included, in the weight format
//   other weights     total_params - all routed experts: a full copy (data-parallel attention)
//   rows received     mean C * k / P; worst C * min(k, slots of the rank): a token's experts are
//                     distinct, so a rank gets at most one row per slot from it
//   exchange(R)       2 * (T * k + R) * IO * 2 bytes: rows sent and received, dispatch and combine
//   activations       T * hidden_dim * (2 + 2 + 4) bytes (input, output, fp32 sums) and
//                     R * (gate_up_cols + ffn_dim) * 2 bytes around the activation; R of the worst
//   KV room           memory * fraction - weights - reserve - exchange(worst) - activations
// Layers reuse buffers. What is unknown is absent, never 0.
struct ServingMemory {
  std::int64_t memory_bytes = 0;  // of the hardware
  std::int64_t usable_bytes = 0;  // times memory_fraction
  std::int64_t reserve_bytes = 0;
  std::int64_t expert_weight_bytes = 0;
  std::optional<std::int64_t> non_expert_weight_bytes;
  double mean_recv_rows = 0;
  std::int64_t worst_recv_rows = 0;
  std::int64_t exchange_bytes_mean = 0, exchange_bytes_worst = 0;
  std::int64_t activation_bytes = 0;
  std::optional<std::int64_t> kv_room_bytes;  // negative where there is none
  KvCost kv;
  std::optional<std::int64_t> kv_bytes_per_sequence;
  // ceil(T / (1 + draft_tokens)): what the point's load asks for, and the bytes short of it.
  std::int64_t sequences_per_rank = 0;
  std::optional<std::int64_t> kv_shortfall_bytes;  // 0 where the load fits
  // The largest load that fits, its own buffers counted; all ranks alike.
  std::optional<std::int64_t> max_sequences_per_rank, max_sequences_per_group;
  std::optional<std::int64_t> max_tokens_per_step;  // of the group: C
  std::optional<double> max_rows_per_expert;        // C * k / E at that load
  std::string unknown;                              // why the KV room is; empty where it is not
};

// Absent for a point without `serving`.
std::optional<ServingMemory> serving_memory(const SweepPoint& point);

// The routed experts' weights alone: [rank with most slots], all MoE layers.
std::int64_t serving_expert_bytes(const ModelShape& model, std::int64_t slots,
                                  const std::string& weight_dtype);

// Of a group that admits as many sequences as its pools hold in all: C_max = P * pool / bytes of a
// sequence. Public limits count this way; max_sequences_per_group above rounds per rank.
std::int64_t pooled_sequences(std::int64_t ep_size, std::int64_t pool_bytes,
                              std::int64_t bytes_of_sequence);

// Why the point's load does not fit beside the weights; absent if it does or cannot be told.
std::optional<LadderStop> kv_stop(const SweepPoint& point);

}  // namespace epsweep
