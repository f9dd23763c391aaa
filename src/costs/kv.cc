#include "costs/kv.h"

#include <algorithm>
#include <optional>

#include "base/error.h"

namespace epsweep {
namespace {

constexpr std::int64_t kBf16Bytes = 2;

// One layer, one token, bf16; absent where a width is not stated.
std::optional<std::int64_t> layer_bytes(const AttentionShape& attention) {
  if (attention.kv_lora_rank.has_value()) {
    if (!attention.qk_rope_head_dim.has_value()) return std::nullopt;
    return (*attention.kv_lora_rank + *attention.qk_rope_head_dim) * kBf16Bytes;
  }
  if (!attention.kv_heads.has_value() || !attention.head_dim.has_value()) return std::nullopt;
  return 2 * *attention.kv_heads * *attention.head_dim * kBf16Bytes;
}

// What only one of the kinds leaves out.
std::string note_of(const AttentionShape& attention) {
  if (attention.kind == "mla_dsa") return "the indexer's keys come on top and are not counted";
  if (attention.kind == "hybrid") {
    return "the state of linear layers, constant per sequence, is not counted";
  }
  if (attention.kind == "gqa_sliding" && !attention.window_layers.has_value()) {
    return "layers with a window of tokens are not counted";
  }
  return "";
}

KvCost unknown(const std::string& why) {
  KvCost cost;
  cost.unknown = why;
  return cost;
}

}  // namespace

KvCost kv_cost(const AttentionShape& attention, KvDType dtype) {
  if (attention.kind == "compressed") {
    return unknown("the KV cache is compressed by context: no constant per token");
  }
  const std::optional<std::int64_t> layer = layer_bytes(attention);
  std::optional<std::int64_t> growing = attention.kv_bytes_per_token;
  if (!growing && layer && attention.kv_layers) growing = *layer * *attention.kv_layers;
  if (!growing) {
    return unknown(
        "the model file states neither kv_bytes_per_token nor the layers and widths "
        "it follows from");
  }
  KvCost cost;
  cost.growing_bytes = *growing;
  if (attention.window_layers && attention.window_tokens) {
    if (!layer) return unknown("the model file states window_layers but not their width");
    cost.window_bytes = *layer * *attention.window_layers;
    cost.window_tokens = *attention.window_tokens;
  }
  if (dtype == KvDType::fp8) {
    cost.growing_bytes /= 2;
    cost.window_bytes /= 2;
  }
  cost.note = note_of(attention);
  return cost;
}

std::int64_t capped_product(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t kCap = std::int64_t{1} << 60;
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kCap : std::min(product, kCap);
}

std::int64_t kv_bytes_of_sequence(const KvCost& cost, std::int64_t context_tokens) {
  EPS_EXPECT(cost.unknown.empty(), "KV bytes of a model whose cache is unknown");
  return capped_product(cost.growing_bytes, context_tokens) +
         capped_product(cost.window_bytes, std::min(context_tokens, cost.window_tokens));
}

}  // namespace epsweep
