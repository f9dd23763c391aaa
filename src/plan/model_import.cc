#include "plan/model_import.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "plan/model_import_attention.h"
#include "plan/model_import_config.h"
#include "plan/model_import_dtype.h"
#include "plan/model_import_families.h"
#include "plan/model_import_layers.h"

namespace epsweep {
namespace {

using Keys = std::vector<std::string>;

// Every name that a published config gives to a fact.
const Keys kExpertKeys = {"n_routed_experts", "num_experts", "num_local_experts",
                          "moe_num_experts"};
const Keys kTopKKeys = {"num_experts_per_tok",
                        "num_experts_per_token",
                        "experts_per_token",
                        "moe_topk",
                        "moe_k",
                        "top_k_experts",
                        "moe_top_k"};
const Keys kIoKeys = {"routed_expert_hidden_size", "moe_latent_size"};
const Keys kActivationKeys = {"hidden_act", "mlp_hidden_act"};
const Keys kSharedCountKeys = {"n_shared_experts", "num_shared_experts", "num_shared_expert",
                               "moe_num_shared_experts"};
const Keys kSharedWidthKeys = {"shared_expert_intermediate_size", "shared_intermediate_size",
                               "moe_shared_expert_intermediate_size", "share_expert_dim"};
const Keys kScoringKeys = {"scoring_func", "moe_router_activation_func"};
const Keys kNormKeys = {"norm_topk_prob", "moe_renormalize"};
const Keys kScaleKeys = {"routed_scaling_factor", "moe_router_scaling_factor"};
const Keys kGroupKeys = {"n_group", "num_expert_group"};
const Keys kBiasKeys = {"use_routing_bias", "use_moe_router_bias"};

std::string shown(std::int64_t value) {
  return std::to_string(value);
}
std::string shown(int value) {
  return std::to_string(value);
}
std::string shown(double value) {
  return fmt::format("{}", value);
}
std::string shown(bool value) {
  return value ? "true" : "false";
}
std::string shown(const std::string& value) {
  return value;
}
std::string shown(Scoring value) {
  return scoring_names()[static_cast<std::size_t>(value)];
}

class Importer {
 public:
  Importer(const HfConfig& config, const std::string& name, const std::string& source)
      : config_(config), family_(find_model_family(config.model_types())) {
    result_.model.name = name;
    result_.model.source = source;
    result_.notes = family_.notes;
  }

  ModelImport run() {
    check_has_experts();
    import_widths();
    import_experts();
    import_shared();
    import_layers();
    import_router();
    import_attention();
    import_dtype();
    fail_on_missing();
    if (const auto problem = find_shape_problem(result_.model)) config_.fail(problem->text);
    return std::move(result_);
  }

 private:
  template <typename Target, typename T>
  void set(const std::string& field, Target& target, const Fact<T>& fact) {
    target = static_cast<Target>(fact.value);
    result_.values.push_back({field, fact.key, shown(target)});
  }

  // A fact that may stay open.
  void set_optional(const std::string& field, std::optional<std::int64_t>& target,
                    const std::optional<Fact<std::int64_t>>& fact) {
    if (fact) target = fact->value;
    result_.values.push_back(
        {field, fact ? fact->key : "not stated", fact ? shown(fact->value) : ""});
  }

  // What the config states, else the family's rule; with neither the field goes on the list of
  // what has to be added, so that one message names them all.
  template <typename Target, typename T>
  void set_or_rule(const std::string& field, Target& target, const std::optional<Fact<T>>& stated,
                   const std::optional<T>& rule, const Keys& keys) {
    if (stated) {
      set(field, target, *stated);
    } else if (rule) {
      set(field, target, Fact<T>{family_.rule(), *rule});
    } else {
      missing_.push_back(fmt::format("{} (add {})", field, join(keys, " or ")));
    }
  }

  Fact<std::int64_t> require(const Keys& keys, std::int64_t max) const {
    const auto found = config_.count(keys, 1, max);
    if (!found) config_.fail(fmt::format("a value is missing: looked for {}", join(keys)));
    return *found;
  }

  void check_has_experts() const {
    const auto experts = config_.count(kExpertKeys, 0, kMaxModelExperts);
    const auto block = config_.flag({"enable_moe_block"});
    if (!experts || experts->value == 0 || (block && !block->value)) {
      config_.fail(fmt::format("the model has no experts: {}",
                               !experts              ? "looked for " + join(kExpertKeys)
                               : experts->value == 0 ? experts->key + " is 0"
                                                     : block->key + " is false"));
    }
  }

  void import_widths() {
    ModelShape& model = result_.model;
    const Fact<std::int64_t> hidden = require({"hidden_size"}, kMaxModelWidth);
    set("hidden_dim", model.hidden_dim, hidden);
    set("expert_io_dim", model.expert_io_dim,
        config_.count(kIoKeys, 1, kMaxModelWidth).value_or(hidden));
    Keys keys = {"moe_intermediate_size"};
    if (family_.experts_use_intermediate) keys.emplace_back("intermediate_size");
    set("ffn_dim", model.ffn_dim, require(keys, kMaxModelWidth));
  }

  void import_experts() {
    ModelShape& model = result_.model;
    set("num_experts", model.num_experts, require(kExpertKeys, kMaxModelExperts));
    set("top_k", model.top_k, require(kTopKKeys, kMaxModelExperts));
    const auto activation = config_.word(kActivationKeys);
    std::optional<Fact<std::int64_t>> gemms;
    const auto is_one_of = [&](const Keys& names) {
      return activation && std::find(names.begin(), names.end(), activation->value) != names.end();
    };
    if (is_one_of({"relu2"})) gemms = {activation->key + " " + activation->value, 2};
    if (is_one_of({"silu", "swiglu", "swigluoai", "situ"})) {
      gemms = {activation->key + " " + activation->value, 3};
    }
    const auto rule = family_.gated ? std::optional<std::int64_t>(3) : std::nullopt;
    set_or_rule("gemms_per_expert", model.gemms_per_expert, gemms, rule,
                {"hidden_act: silu for gated experts", "mlp_hidden_act: relu2 for plain ones"});
  }

  void import_shared() {
    const auto count = config_.count(kSharedCountKeys, 0, kMaxModelExperts);
    const auto width = config_.count(kSharedWidthKeys, 0, kMaxModelWidth);
    set_or_rule("shared_ffn_dim", result_.model.shared_ffn_dim, stated_shared(count, width),
                shared_rule(), {"n_shared_experts, 0 for none"});
  }

  // A count of experts as wide as the routed ones, or a width; whether the width is that of one
  // expert or of all shows only where there is one, or where it fits the count.
  std::optional<Fact<std::int64_t>> stated_shared(
      const std::optional<Fact<std::int64_t>>& count,
      const std::optional<Fact<std::int64_t>>& width) const {
    if (!count) return width;
    const std::int64_t total = count->value * result_.model.ffn_dim;
    if (!width) return Fact<std::int64_t>{count->key + " x ffn_dim", total};
    const bool both_or_none = (count->value == 0) == (width->value == 0);
    if (both_or_none && (count->value <= 1 || width->value == total)) {
      return Fact<std::int64_t>{count->key + " + " + width->key, width->value};
    }
    config_.fail(
        fmt::format("'{}' says {} but '{}' says {}: the total width of the shared experts "
                    "is not clear",
                    count->key, count->value, width->key, width->value));
  }

  std::optional<std::int64_t> shared_rule() const {
    switch (family_.shared) {
      case ModelFamily::Shared::stated:
        return std::nullopt;
      case ModelFamily::Shared::none:
        return 0;
      case ModelFamily::Shared::one_expert:
        return result_.model.ffn_dim;
      case ModelFamily::Shared::dense_block:
        return require({"intermediate_size"}, kMaxModelWidth).value;
    }
    return std::nullopt;
  }

  void import_layers() {
    const LayerCounts counts = count_layers(config_, family_);
    set("num_layers", result_.model.num_layers, counts.layers);
    set("num_moe_layers", result_.model.num_moe_layers, counts.moe_layers);
    const auto hashed = config_.count({"num_hash_layers"}, 0, kMaxModelLayers);
    if (hashed && hashed->value > 0) {
      note(
          fmt::format("{} of the MoE layers take their experts from a table of token ids, which "
                      "is not modelled ({})",
                      hashed->value, hashed->key));
    }
  }

  void import_router() {
    RouterShape& router = result_.model.router;
    set_or_rule("router.scoring", router.scoring, stated_scoring(), family_.scoring, kScoringKeys);
    set_or_rule("router.renormalize", router.renormalize, config_.flag(kNormKeys),
                family_.renormalize, kNormKeys);
    set_or_rule("router.scale", router.scale, stated_scale(), family_.scale, kScaleKeys);
    import_groups(router);
    set_or_rule("router.selection_bias", router.selection_bias, stated_bias(),
                family_.selection_bias, kBiasKeys);
  }

  std::optional<Fact<Scoring>> stated_scoring() const {
    const auto word = config_.word(kScoringKeys);
    if (!word) return std::nullopt;
    // topk_softmax is this project's name for a rule that no config key states.
    for (const Scoring scoring : {Scoring::softmax, Scoring::sigmoid, Scoring::sqrtsoftplus}) {
      if (word->value == shown(scoring)) return Fact<Scoring>{word->key, scoring};
    }
    config_.fail(fmt::format("{}: unknown scoring '{}'; known: softmax, sigmoid, sqrtsoftplus",
                             word->key, word->value));
  }

  std::optional<Fact<double>> stated_scale() const {
    auto scale = config_.number(kScaleKeys);
    if (scale && !(scale->value >= kMinModelScale && scale->value <= kMaxModelScale)) {
      config_.fail(fmt::format("{}: {} is outside {} to {}", scale->key, scale->value,
                               kMinModelScale, kMaxModelScale));
    }
    return scale;
  }

  void import_groups(RouterShape& router) {
    auto groups = config_.count(kGroupKeys, 1, kMaxModelExperts);
    auto chosen = config_.count({"topk_group"}, 1, kMaxModelExperts);
    const auto method = config_.word({"topk_method"});
    const auto grouped = config_.flag({"use_grouped_topk"});
    if (method && method->value == "greedy") {  // looks at no groups, whatever n_group says
      groups = chosen = {method->key + " greedy", 1};
    } else if (grouped && !grouped->value) {
      groups = chosen = {grouped->key + " false", 1};
    }
    const auto rule = family_.ungrouped ? std::optional<std::int64_t>(1) : std::nullopt;
    set_or_rule("router.num_groups", router.num_groups, groups, rule, kGroupKeys);
    set_or_rule("router.topk_groups", router.topk_groups, chosen, rule, {"topk_group"});
  }

  std::optional<Fact<bool>> stated_bias() const {
    auto flag = config_.flag(kBiasKeys);
    const auto method = config_.word({"topk_method"});
    if (!method) return flag;
    const bool implied = method->value == "noaux_tc";
    const Keys known = {"noaux_tc", "greedy", "group_limited_greedy"};
    if (std::find(known.begin(), known.end(), method->value) == known.end()) {
      config_.fail(fmt::format("{}: unknown method '{}'; known: {}", method->key, method->value,
                               join(known)));
    }
    if (flag && flag->value != implied) {
      config_.fail(fmt::format("'{}' says {} but '{}' says {}", flag->key, flag->value, method->key,
                               method->value));
    }
    return Fact<bool>{method->key + " " + method->value, implied};
  }

  void import_attention() {
    AttentionShape& shape = result_.model.attention;
    const AttentionFacts facts =
        read_attention_facts(config_, family_, result_.model.hidden_dim, result_.model.num_layers);
    set("attention.kind", shape.kind, facts.kind);
    set_optional("attention.kv_heads", shape.kv_heads, facts.kv_heads);
    set_optional("attention.head_dim", shape.head_dim, facts.head_dim);
    set_optional("attention.kv_lora_rank", shape.kv_lora_rank, facts.kv_lora_rank);
    set_optional("attention.qk_rope_head_dim", shape.qk_rope_head_dim, facts.qk_rope_head_dim);
    set_optional("attention.kv_layers", shape.kv_layers, facts.kv_layers);
    set_optional("attention.kv_bytes_per_token", shape.kv_bytes_per_token,
                 facts.kv_bytes_per_token);
    set_optional("attention.window_layers", shape.window_layers, facts.window_layers);
    set_optional("attention.window_tokens", shape.window_tokens, facts.window_tokens);
    for (const std::string& text : facts.notes) note(text);
  }

  void import_dtype() {
    const auto dtype = published_dtype(config_);
    set("weight_dtype", result_.model.weight_dtype,
        dtype.value_or(Fact<std::string>{"not stated", ""}));
    if (!dtype) note("the config states no weight type (quantization_config, torch_dtype)");
  }

  void fail_on_missing() const {
    if (missing_.empty()) return;
    config_.fail(
        fmt::format("the config does not state, and there is no rule for model_type '{}' "
                    "to supply: {}",
                    family_.model_type, join(missing_)));
  }

  void note(const std::string& text) { result_.notes.push_back(text); }

  const HfConfig& config_;
  ModelFamily family_;
  ModelImport result_;
  std::vector<std::string> missing_;
};

}  // namespace

ModelImport import_model(std::string_view config_json, const std::string& name,
                         const std::string& where) {
  const HfConfig config(config_json, where);
  return Importer(config, name, where).run();
}

}  // namespace epsweep
