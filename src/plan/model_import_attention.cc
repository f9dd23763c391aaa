#include "plan/model_import_attention.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"

namespace epsweep {
namespace {

using Count = std::optional<Fact<std::int64_t>>;

constexpr std::int64_t kBytesPerElement = 2;  // bf16
constexpr std::int64_t kNoLimit = INT32_MAX;

std::int64_t size_of(const auto& list) {
  return static_cast<std::int64_t>(list.size());
}

class AttentionImport {
 public:
  AttentionImport(const HfConfig& config, const ModelFamily& family, std::int64_t hidden_dim,
                  std::int64_t num_layers)
      : config_(config), family_(family), hidden_dim_(hidden_dim), num_layers_(num_layers) {}

  AttentionFacts read() {
    find_growing_layers();
    read_widths();
    read_kv_layers();
    name_kind();
    count_bytes();
    return std::move(facts_);
  }

 private:
  // All lists of layers have to agree on how many caches grow.
  void add_growing(const std::string& key, std::int64_t growing, bool is_linear) {
    if (growing_ && growing_->value != growing) {
      config_.fail(fmt::format("'{}' leaves {} layers of full attention but '{}' {}", growing_->key,
                               growing_->value, key, growing));
    }
    growing_ = {growing_ ? growing_->key + " + " + key : key, growing};
    has_linear_ = has_linear_ || is_linear;
    has_sliding_ = has_sliding_ || (!is_linear && growing < num_layers_);
  }

  void find_growing_layers() {
    if (const auto full = config_.counts("linear_attn_config.full_attn_layers", 0, num_layers_)) {
      add_growing(full->key, size_of(full->value), true);
    }
    if (const auto types = config_.words("layers_block_type")) {
      add_growing(types->key, std::count(types->value.begin(), types->value.end(), "attention"),
                  true);
    }
    if (const auto pattern = config_.word({"hybrid_override_pattern"})) {
      add_growing(pattern->key, std::count(pattern->value.begin(), pattern->value.end(), '*'),
                  true);
    }
    if (const auto interval = config_.count({"full_attention_interval"}, 1, kNoLimit)) {
      add_growing(interval->key, num_layers_ / interval->value, true);
    }
    if (const auto sliding = config_.counts("hybrid_layer_pattern", 0, 1)) {
      check_length(sliding->key, size_of(sliding->value));
      add_growing(sliding->key, std::count(sliding->value.begin(), sliding->value.end(), 0), false);
    }
    read_layer_types();
  }

  void check_length(const std::string& key, std::int64_t length) const {
    if (length == num_layers_) return;
    config_.fail(fmt::format("{} lists {} layers but the model has {}", key, length, num_layers_));
  }

  void read_layer_types() {
    const auto types = config_.words("layer_types");
    if (!types) return;
    const std::vector<std::string> known = {"full_attention", "linear_attention",
                                            "sliding_attention", "chunked_attention"};
    for (const std::string& type : types->value) {
      if (std::find(known.begin(), known.end(), type) != known.end()) continue;
      config_.fail(
          fmt::format("{}: unknown layer type '{}'; known: {}", types->key, type, join(known)));
    }
    check_length(types->key, size_of(types->value));
    const auto& words = types->value;
    const bool is_linear = std::find(words.begin(), words.end(), known[1]) != words.end();
    add_growing(types->key, std::count(words.begin(), words.end(), known[0]), is_linear);
  }

  void read_widths() {
    heads_ = config_.count({"num_attention_heads"}, 1, kNoLimit);
    // Where the full-attention layers have widths of their own, only those matter.
    facts_.kv_heads = config_.count({"num_global_key_value_heads"}, 1, kNoLimit);
    if (!facts_.kv_heads) facts_.kv_heads = config_.count({"num_key_value_heads"}, 1, kNoLimit);
    facts_.kv_lora_rank = config_.count({"kv_lora_rank"}, 1, kNoLimit);
    const bool is_compressed = family_.attention == ModelFamily::Attention::compressed;
    if (facts_.kv_lora_rank || is_compressed) {
      facts_.qk_rope_head_dim = config_.count({"qk_rope_head_dim"}, 1, kNoLimit);
    }
    if (facts_.kv_lora_rank) return;  // a latent stands for all heads
    facts_.head_dim = config_.count({"global_head_dim"}, 1, kNoLimit);
    if (!facts_.head_dim) {
      facts_.head_dim = config_.count({"head_dim", "attention_head_dim"}, 1, kNoLimit);
    }
    if (!facts_.head_dim && heads_ && hidden_dim_ % heads_->value == 0) {
      facts_.head_dim = {"hidden_size / " + heads_->key, hidden_dim_ / heads_->value};
    }
  }

  void read_kv_layers() {
    using Rule = ModelFamily::Attention;
    const Count window = config_.count({"sliding_window"}, 0, kNoLimit);
    const auto use_window = config_.flag({"use_sliding_window"});
    const bool windowed = window && window->value > 0 && !(use_window && !use_window->value);
    if (growing_) {
      facts_.kv_layers = growing_;
      if (has_sliding_) {
        note(fmt::format("{} of {} layers hold at most a window of tokens; they are not counted",
                         num_layers_ - growing_->value, num_layers_));
        if (windowed && !has_linear_) {
          facts_.window_layers = {growing_->key, num_layers_ - growing_->value};
          facts_.window_tokens = window;
        }
      }
      return;
    }
    has_sliding_ =
        windowed && family_.attention != Rule::full && family_.attention != Rule::compressed;
    if (family_.attention == Rule::listed || has_sliding_) {
      note(
          "the config does not list the layers of full attention, so the KV bytes per token are "
          "unknown (looked for layer_types, full_attention_interval, hybrid_layer_pattern, "
          "linear_attn_config.full_attn_layers)");
      return;
    }
    if (windowed && family_.attention == Rule::full) {
      note(fmt::format("{} {} is taken as not in force", window->key, window->value));
    }
    facts_.kv_layers = {"all layers", num_layers_};
  }

  void name_kind() {
    const bool is_listed = family_.attention == ModelFamily::Attention::listed;
    if (family_.attention == ModelFamily::Attention::compressed) {
      facts_.kind = {family_.rule(), "compressed"};
    } else if (has_linear_) {
      facts_.kind = {growing_->key, "hybrid"};
    } else if (has_sliding_) {
      facts_.kind = {growing_ ? growing_->key : "sliding_window", "gqa_sliding"};
    } else if (is_listed && !growing_) {
      facts_.kind = {family_.rule(), "hybrid"};
    } else if (facts_.kv_lora_rank) {
      const auto sparse = config_.count({"index_topk"}, 1, kNoLimit);
      facts_.kind = {facts_.kv_lora_rank->key, "mla"};
      if (sparse) facts_.kind = {facts_.kv_lora_rank->key + " + " + sparse->key, "mla_dsa"};
      if (sparse) note("the indexer's keys come on top of the KV bytes and are not counted");
    } else if (facts_.kv_heads) {
      const bool all_heads = heads_ && heads_->value == facts_.kv_heads->value;
      facts_.kind = {facts_.kv_heads->key, all_heads ? "mha" : "gqa"};
    } else {
      facts_.kind = {"not stated", ""};
      note("the config does not say how many key/value heads there are (num_key_value_heads)");
    }
  }

  void count_bytes() {
    if (family_.attention == ModelFamily::Attention::compressed) {
      note("the KV cache is compressed by context, so its bytes per token are no constant");
      return;
    }
    if (!facts_.kv_layers) return;
    const std::int64_t scale = kBytesPerElement * facts_.kv_layers->value;
    if (facts_.kv_lora_rank) {
      if (!facts_.qk_rope_head_dim) {
        note("kv_lora_rank without qk_rope_head_dim: the KV bytes per token are unknown");
        return;
      }
      const std::int64_t width = facts_.kv_lora_rank->value + facts_.qk_rope_head_dim->value;
      facts_.kv_bytes_per_token = {"(kv_lora_rank + qk_rope_head_dim) x kv_layers x 2 bytes",
                                   width * scale};
    } else if (facts_.kv_heads && facts_.head_dim) {
      const Count value_dim = config_.count({"v_head_dim"}, 1, kNoLimit);
      const std::int64_t width =
          facts_.head_dim->value + (value_dim ? value_dim->value : facts_.head_dim->value);
      facts_.kv_bytes_per_token = {"kv_heads x (key + value head_dim) x kv_layers x 2 bytes",
                                   facts_.kv_heads->value * width * scale};
    }
  }

  void note(const std::string& text) { facts_.notes.push_back(text); }

  const HfConfig& config_;
  const ModelFamily& family_;
  std::int64_t hidden_dim_;
  std::int64_t num_layers_;
  AttentionFacts facts_{};
  Count heads_, growing_;
  bool has_linear_ = false;
  bool has_sliding_ = false;
};

}  // namespace

AttentionFacts read_attention_facts(const HfConfig& config, const ModelFamily& family,
                                    std::int64_t hidden_dim, std::int64_t num_layers) {
  return AttentionImport(config, family, hidden_dim, num_layers).read();
}

}  // namespace epsweep
