// Bytes of KV cache that tokens of a sequence take.
#pragma once

#include <cstdint>
#include <string>

#include "plan/model_shape.h"
#include "plan/serving.h"

namespace epsweep {

// Of a whole model, on the rank that holds the sequence (data-parallel attention: no rank holds a
// part of another's). A sequence of L tokens takes
//   growing_bytes * L + window_bytes * min(L, window_tokens)
struct KvCost {
  std::string unknown;  // why there is no number; empty where there is, and then the rest holds
  std::int64_t growing_bytes = 0;  // per token, layers whose cache grows with every token
  std::int64_t window_bytes = 0;   // per token, layers that hold the last window_tokens only
  std::int64_t window_tokens = 0;
  std::string note;  // what the numbers leave out; empty for nothing
};

// Per growing layer and token in bf16: latent attention (MLA) keeps
// (kv_lora_rank + qk_rope_head_dim) * 2 bytes, others 2 * kv_heads * head_dim * 2; fp8 is half of
// that, without scales. A kv_bytes_per_token that the model file states wins over its parts: heads
// of keys and values may differ in width.
KvCost kv_cost(const AttentionShape& attention, KvDType dtype);

// a * b, or 2^60 where it is more, so that absurd loads still compare. Neither may be negative.
std::int64_t capped_product(std::int64_t a, std::int64_t b);

// Of a sequence; `cost` must be known.
std::int64_t kv_bytes_of_sequence(const KvCost& cost, std::int64_t context_tokens);

}  // namespace epsweep
