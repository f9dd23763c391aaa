// What a config.json says about the KV cache of one token.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/model_import_config.h"
#include "plan/model_import_families.h"

namespace epsweep {

struct AttentionFacts {
  Fact<std::string> kind;
  std::optional<Fact<std::int64_t>> kv_heads, head_dim, kv_lora_rank, qk_rope_head_dim;
  // Layers whose cache grows with every token; sliding windows and linear attention do not.
  std::optional<Fact<std::int64_t>> kv_layers;
  std::optional<Fact<std::int64_t>> kv_bytes_per_token;
  // Layers that hold at most a window of tokens; absent where layers differ in more than that.
  std::optional<Fact<std::int64_t>> window_layers, window_tokens;
  std::vector<std::string> notes;
};

AttentionFacts read_attention_facts(const HfConfig& config, const ModelFamily& family,
                                    std::int64_t hidden_dim, std::int64_t num_layers);

}  // namespace epsweep
