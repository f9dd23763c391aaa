#include "report/memory_json.h"

namespace epsweep {
namespace {

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json kv_json(const ServingMemory& memory) {
  const KvCost& kv = memory.kv;
  const bool known = kv.unknown.empty();
  return {{"growing_bytes_per_token", known ? Json(kv.growing_bytes) : Json(nullptr)},
          {"window_bytes_per_token", known ? Json(kv.window_bytes) : Json(nullptr)},
          {"window_tokens", known ? Json(kv.window_tokens) : Json(nullptr)},
          {"bytes_per_sequence", json_or_null(memory.kv_bytes_per_sequence)},
          {"room_bytes", json_or_null(memory.kv_room_bytes)},
          {"shortfall_bytes", json_or_null(memory.kv_shortfall_bytes)},
          {"unknown", text_or_null(kv.unknown)},
          {"note", text_or_null(kv.note)}};
}

}  // namespace

Json serving_memory_json(const std::optional<ServingMemory>& memory) {
  if (!memory.has_value()) return nullptr;
  const ServingMemory& m = *memory;
  const bool has_weights = m.expert_weight_bytes > 0;
  return {{"memory_bytes", m.memory_bytes},
          {"usable_bytes", m.usable_bytes},
          {"reserve_bytes", m.reserve_bytes},
          {"expert_weight_bytes", has_weights ? Json(m.expert_weight_bytes) : Json(nullptr)},
          {"non_expert_weight_bytes", json_or_null(m.non_expert_weight_bytes)},
          {"recv_rows_mean", m.mean_recv_rows},
          {"recv_rows_worst", m.worst_recv_rows},
          {"exchange_bytes_mean", m.exchange_bytes_mean},
          {"exchange_bytes_worst", m.exchange_bytes_worst},
          {"activation_bytes", m.activation_bytes},
          {"kv", kv_json(m)},
          {"sequences_per_rank", m.sequences_per_rank},
          {"max_sequences_per_rank", json_or_null(m.max_sequences_per_rank)},
          {"max_sequences_per_group", json_or_null(m.max_sequences_per_group)},
          {"max_tokens_per_step", json_or_null(m.max_tokens_per_step)},
          {"max_rows_per_expert", json_or_null(m.max_rows_per_expert)},
          {"unknown", text_or_null(m.unknown)}};
}

const char* serving_memory_formula() {
  return "a rank of a deployment with data-parallel attention, whole model: expert weights of its "
         "slots in all MoE layers, a full copy of all other weights, buffers of one step; worst "
         "rows = tokens_global * min(top_k, slots of the rank), mean = tokens_global * top_k / "
         "ep_size; kv room = memory * fraction - weights - reserve - worst exchange - activations; "
         "max_sequences: the most whose KV and buffers fit; tokens per step = sequences * (1 + "
         "draft_tokens)";
}

}  // namespace epsweep
