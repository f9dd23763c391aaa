#include "plan/model_import_layers.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "base/text.h"

namespace epsweep {
namespace {

constexpr std::int64_t kNoLimit = INT32_MAX;

// One flag per layer and the keys they come from.
struct LayerMask {
  std::vector<char> moe;
  std::vector<std::string> keys;
};

class LayerRules {
 public:
  LayerRules(const HfConfig& config, const ModelFamily& family)
      : config_(config), family_(family), layers_(find_num_layers()) {
    if (layers_.value > kMaxModelLayers) {
      config_.fail(fmt::format("{} says {} layers; at most {} are supported", layers_.key,
                               layers_.value, kMaxModelLayers));
    }
    formula_.moe.assign(static_cast<std::size_t>(layers_.value), 1);
  }

  LayerCounts count() {
    read_dense_prefix();
    read_steps();
    read_ernie_range();
    read_dense_list();
    read_lists();
    const LayerMask& mask = listed_.keys.empty() ? formula_ : listed_;
    check_lists_against_formula();
    const bool settled = complete_ || !listed_.keys.empty();
    if (!settled && !family_.all_layers_moe) fail_unsettled();
    const std::int64_t num_moe = std::count(mask.moe.begin(), mask.moe.end(), 1);
    std::vector<std::string> keys = mask.keys;
    if (!settled) keys.push_back(family_.rule() + " (all layers)");
    if (num_moe == 0) config_.fail(fmt::format("no layer has experts by {}", join(keys, " + ")));
    return {layers_, {join(keys, " + "), num_moe}};
  }

 private:
  Fact<std::int64_t> find_num_layers() const {
    if (const auto stated = config_.count({"num_hidden_layers"}, 1, kMaxModelLayers)) {
      return *stated;
    }
    if (const auto types = config_.words("layers_block_type")) {
      return {types->key + " (length)", static_cast<std::int64_t>(types->value.size())};
    }
    if (const auto pattern = config_.word({"hybrid_override_pattern"})) {
      return {pattern->key + " (length)", static_cast<std::int64_t>(pattern->value.size())};
    }
    config_.fail(
        "the number of layers is missing: looked for num_hidden_layers, layers_block_type, "
        "hybrid_override_pattern");
  }

  // A formula over layer numbers; one that leaves other keys open does not settle the question.
  void restrict(const std::string& key, bool settles,
                const std::function<bool(std::int64_t)>& has_experts) {
    formula_.keys.push_back(key);
    complete_ = complete_ || settles;
    for (std::size_t i = 0; i < formula_.moe.size(); ++i) {
      if (!has_experts(static_cast<std::int64_t>(i))) formula_.moe[i] = 0;
    }
  }

  void read_dense_prefix() {
    for (const char* key : {"first_k_dense_replace", "moe_layer_num_skipped"}) {
      const auto dense = config_.count({key}, 0, kNoLimit);
      if (dense) restrict(dense->key, true, [&](std::int64_t i) { return i >= dense->value; });
    }
  }

  void read_steps() {
    if (!config_.has_list("moe_layer_freq")) {
      // Counts from layer 0; the dense layers before it are first_k_dense_replace's to name.
      const auto freq = config_.count({"moe_layer_freq"}, 1, kNoLimit);
      if (freq) restrict(freq->key, false, [&](std::int64_t i) { return i % freq->value == 0; });
    }
    for (const char* key : {"decoder_sparse_step", "interleave_moe_layer_step"}) {
      const auto step = config_.count({key}, 1, kNoLimit);
      if (step)
        restrict(step->key, true, [&](std::int64_t i) { return (i + 1) % step->value == 0; });
    }
  }

  void read_ernie_range() {
    const auto start = config_.count({"moe_layer_start_index"}, 0, kNoLimit);
    const auto end = config_.count({"moe_layer_end_index"}, 0, kNoLimit);
    const auto interval = config_.count({"moe_layer_interval"}, 1, kNoLimit);
    if (!start && !end && !interval) return;
    if (!start || !end || !interval) {
      config_.fail(
          "moe_layer_start_index, moe_layer_end_index and moe_layer_interval only tell the MoE "
          "layers together");
    }
    restrict(join({start->key, end->key, interval->key}, " + "), true, [&](std::int64_t i) {
      return (i + 1) % interval->value == 0 && i >= start->value && i <= end->value;
    });
  }

  void read_dense_list() {
    const auto dense = config_.counts("mlp_only_layers", 0, layers_.value - 1);
    if (!dense) return;
    restrict(dense->key, false, [&](std::int64_t i) {
      return std::find(dense->value.begin(), dense->value.end(), i) == dense->value.end();
    });
  }

  void read_lists() {
    if (config_.has_list("moe_layer_freq")) {
      const auto flags = config_.counts("moe_layer_freq", 0, 1);
      add_list(flags->key, std::vector<char>(flags->value.begin(), flags->value.end()));
    }
    if (const auto pattern = config_.word({"hybrid_override_pattern"})) {
      add_words(pattern->key, {pattern->value.begin(), pattern->value.end()}, 'E', "ME*-");
    }
    add_types("layers_block_type", {"moe"}, {"mamba", "attention", "mlp"});
    add_types("mlp_layer_types", {"sparse", "moe"}, {"dense"});
  }

  void add_words(const std::string& key, const std::vector<char>& letters, char moe,
                 std::string_view known) {
    std::vector<char> flags;
    for (const char letter : letters) {
      if (known.find(letter) == std::string_view::npos) {
        config_.fail(fmt::format("{}: unknown layer letter '{}'; known: {}", key, letter, known));
      }
      flags.push_back(letter == moe ? 1 : 0);
    }
    add_list(key, flags);
  }

  void add_types(const std::string& key, const std::vector<std::string>& moe,
                 const std::vector<std::string>& others) {
    const auto types = config_.words(key);
    if (!types) return;
    std::vector<char> flags;
    for (const std::string& type : types->value) {
      const bool is_moe = std::find(moe.begin(), moe.end(), type) != moe.end();
      if (!is_moe && std::find(others.begin(), others.end(), type) == others.end()) {
        config_.fail(fmt::format("{}: unknown layer type '{}'; known: {}, {}", types->key, type,
                                 join(moe), join(others)));
      }
      flags.push_back(is_moe ? 1 : 0);
    }
    add_list(types->key, flags);
  }

  void add_list(const std::string& key, const std::vector<char>& flags) {
    if (flags.size() != formula_.moe.size()) {
      config_.fail(fmt::format("{} lists {} layers but {} says {}", key, flags.size(), layers_.key,
                               layers_.value));
    }
    if (!listed_.keys.empty() && listed_.moe != flags) {
      config_.fail(
          fmt::format("'{}' and '{}' name different MoE layers", listed_.keys.front(), key));
    }
    listed_.moe = flags;
    listed_.keys.push_back(key);
  }

  // A list may name fewer layers than a formula allows, never one that the formula rules out.
  void check_lists_against_formula() const {
    if (listed_.keys.empty() || formula_.keys.empty()) return;
    for (std::size_t i = 0; i < listed_.moe.size(); ++i) {
      if (listed_.moe[i] == 0 || formula_.moe[i] != 0) continue;
      config_.fail(fmt::format("'{}' gives layer {} experts but '{}' does not",
                               join(listed_.keys, " + "), i, join(formula_.keys, " + ")));
    }
  }

  [[noreturn]] void fail_unsettled() const {
    config_.fail(fmt::format(
        "which layers have experts is not settled for model_type '{}'{}: looked for "
        "first_k_dense_replace, moe_layer_freq as a list, decoder_sparse_step, "
        "interleave_moe_layer_step, moe_layer_start_index, moe_layer_num_skipped, "
        "hybrid_override_pattern, layers_block_type, mlp_layer_types",
        family_.model_type,
        formula_.keys.empty() ? "" : fmt::format(" by {} alone", join(formula_.keys, " + "))));
  }

  const HfConfig& config_;
  const ModelFamily& family_;
  Fact<std::int64_t> layers_;
  LayerMask formula_, listed_;
  bool complete_ = false;
};

}  // namespace

LayerCounts count_layers(const HfConfig& config, const ModelFamily& family) {
  return LayerRules(config, family).count();
}

}  // namespace epsweep
