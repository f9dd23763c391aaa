#include "plan/model_shape.h"

#include <algorithm>
#include <cctype>
#include <tuple>

#include <fmt/format.h>

#include "plan/yaml_reader.h"

namespace epsweep {
namespace {

constexpr std::int64_t kMaxKvBytes = std::int64_t{1} << 40;

// The optional numbers of AttentionShape, in file order. No layer's cache grows in a model of
// linear attention alone.
struct KvField {
  const char* key;
  std::int64_t min;
  std::optional<std::int64_t> AttentionShape::*member;
};

constexpr KvField kKvFields[] = {
    {"kv_heads", 1, &AttentionShape::kv_heads},
    {"head_dim", 1, &AttentionShape::head_dim},
    {"kv_lora_rank", 1, &AttentionShape::kv_lora_rank},
    {"qk_rope_head_dim", 1, &AttentionShape::qk_rope_head_dim},
    {"kv_layers", 0, &AttentionShape::kv_layers},
    {"kv_bytes_per_token", 0, &AttentionShape::kv_bytes_per_token},
    {"window_layers", 0, &AttentionShape::window_layers},
    {"window_tokens", 1, &AttentionShape::window_tokens},
};

const std::vector<std::string> kRouterKeys = {"scoring",    "renormalize", "scale",
                                              "num_groups", "topk_groups", "selection_bias"};

template <typename Int>
void read_int(const MapReader& reader, const char* key, std::int64_t min, std::int64_t max,
              Int& value) {
  const YamlNode* node = reader.find(key);
  if (node != nullptr) value = static_cast<Int>(read_count(*node, min, max));
}

void read_text(const MapReader& reader, const char* key, std::string& value) {
  const YamlNode* node = reader.find(key);
  if (node != nullptr) value = read_word(*node);
}

void read_router(const YamlNode& node, RouterShape& router) {
  const MapReader reader(node, kRouterKeys);
  if (const YamlNode* scoring = reader.find("scoring")) {
    router.scoring = read_enum<Scoring>(*scoring, scoring_names());
  }
  if (const YamlNode* flag = reader.find("renormalize")) router.renormalize = read_flag(*flag);
  if (const YamlNode* scale = reader.find("scale")) {
    router.scale = read_number(*scale, kMinModelScale, kMaxModelScale);
  }
  read_int(reader, "num_groups", 1, kMaxModelExperts, router.num_groups);
  read_int(reader, "topk_groups", 1, kMaxModelExperts, router.topk_groups);
  if (const YamlNode* flag = reader.find("selection_bias")) {
    router.selection_bias = read_flag(*flag);
  }
}

void read_attention(const YamlNode& node, AttentionShape& attention) {
  std::vector<std::string> keys = {"kind"};
  for (const KvField& field : kKvFields) keys.emplace_back(field.key);
  const MapReader reader(node, keys);
  // Changed facts make the base's total wrong, so it has to be stated anew.
  if (!node.entries.empty()) attention.kv_bytes_per_token.reset();
  read_text(reader, "kind", attention.kind);
  for (const KvField& field : kKvFields) {
    const YamlNode* found = reader.find(field.key);
    if (found != nullptr) attention.*field.member = read_count(*found, field.min, kMaxKvBytes);
  }
}

void read_sizes(const MapReader& reader, bool has_base, ModelShape& model) {
  const bool has_latent = has_base && model.expert_io_dim != model.hidden_dim;
  const int base_layers = model.num_layers;
  read_int(reader, "hidden_dim", 1, kMaxModelWidth, model.hidden_dim);
  if (!has_latent) model.expert_io_dim = model.hidden_dim;
  read_int(reader, "expert_io_dim", 1, kMaxModelWidth, model.expert_io_dim);
  read_int(reader, "ffn_dim", 1, kMaxModelWidth, model.ffn_dim);
  read_int(reader, "num_experts", 1, kMaxModelExperts, model.num_experts);
  read_int(reader, "top_k", 1, kMaxModelExperts, model.top_k);
  read_int(reader, "gemms_per_expert", 2, 3, model.gemms_per_expert);
  read_int(reader, "shared_ffn_dim", 0, kMaxModelWidth, model.shared_ffn_dim);
  read_int(reader, "num_moe_layers", 1, kMaxModelLayers, model.num_moe_layers);
  if (!has_base) model.num_layers = model.num_moe_layers;
  read_int(reader, "num_layers", 1, kMaxModelLayers, model.num_layers);
  if (has_base && model.num_layers != base_layers) {  // the base's KV layers are no longer these
    model.attention.kv_layers.reset();
    model.attention.kv_bytes_per_token.reset();
    model.attention.window_layers.reset();
  }
}

// A base's total does not survive other sizes.
void read_total_params(const MapReader& reader, const std::optional<ModelShape>& base,
                       ModelShape& model) {
  const auto sizes = [](const ModelShape& m) {
    return std::tuple(m.hidden_dim, m.expert_io_dim, m.ffn_dim, m.num_experts, m.gemms_per_expert,
                      m.shared_ffn_dim, m.num_layers, m.num_moe_layers);
  };
  if (base.has_value() && sizes(*base) != sizes(model)) model.total_params.reset();
  if (const YamlNode* node = reader.find("total_params")) {
    model.total_params = read_count(*node, 1, INT64_MAX / 16);
  }
}

std::string misplaced_key_advice(const std::string& key) {
  if (std::find(kRouterKeys.begin(), kRouterKeys.end(), key) != kRouterKeys.end()) {
    return "it belongs under 'router'";
  }
  const bool of_attention = std::any_of(std::begin(kKvFields), std::end(kKvFields),
                                        [&](const KvField& field) { return key == field.key; });
  return of_attention ? "it belongs under 'attention'" : "";
}

// Plain where YAML surely reads it back as the same text, else in double quotes.
std::string yaml_text(const std::string& text) {
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '-' || c == '/';
  };
  const bool plain = !text.empty() && std::isalpha(static_cast<unsigned char>(text[0])) != 0 &&
                     std::all_of(text.begin(), text.end(), is_plain) && text != "null" &&
                     text != "Null" && text != "NULL";
  return plain ? text : to_json_line(text);
}

std::string optional_text(const char* key, const std::string& text) {
  return text.empty() ? "" : fmt::format("{}: {}\n", key, yaml_text(text));
}

std::string attention_yaml(const AttentionShape& attention) {
  std::string lines;
  if (!attention.kind.empty()) lines += fmt::format("  kind: {}\n", yaml_text(attention.kind));
  for (const KvField& field : kKvFields) {
    const std::optional<std::int64_t>& value = attention.*field.member;
    if (value.has_value()) lines += fmt::format("  {}: {}\n", field.key, *value);
  }
  return lines.empty() ? "" : "attention:\n" + lines;
}

}  // namespace

const std::vector<std::string>& scoring_names() {
  static const std::vector<std::string> names = {"softmax", "topk_softmax", "sigmoid",
                                                 "sqrtsoftplus"};
  return names;
}

const std::vector<std::string>& model_shape_keys() {
  static const std::vector<std::string> keys = {
      "name",           "source",       "hidden_dim",       "expert_io_dim",  "ffn_dim",
      "num_experts",    "top_k",        "gemms_per_expert", "shared_ffn_dim", "num_layers",
      "num_moe_layers", "total_params", "router",           "attention",      "weight_dtype"};
  return keys;
}

std::optional<ShapeProblem> find_router_problem(const ModelShape& model) {
  const RouterShape& router = model.router;
  if (model.top_k < 1 || model.top_k > model.num_experts) {
    return ShapeProblem{"top_k", fmt::format("top_k is {}, but must be from 1 to num_experts, "
                                             "which is {}",
                                             model.top_k, model.num_experts)};
  }
  if (router.num_groups < 1 || model.num_experts % router.num_groups != 0) {
    return ShapeProblem{"router", fmt::format("num_experts is {}, which does not divide into "
                                              "num_groups, which is {}",
                                              model.num_experts, router.num_groups)};
  }
  if (router.topk_groups < 1 || router.topk_groups > router.num_groups) {
    return ShapeProblem{"router", fmt::format("topk_groups is {}, but must be from 1 to "
                                              "num_groups, which is {}",
                                              router.topk_groups, router.num_groups)};
  }
  const int reachable = router.topk_groups * (model.num_experts / router.num_groups);
  if (model.top_k > reachable) {
    return ShapeProblem{"router",
                        fmt::format("top_k is {}, but topk_groups {} of {} groups hold "
                                    "only {} experts",
                                    model.top_k, router.topk_groups, router.num_groups, reachable)};
  }
  return std::nullopt;
}

std::optional<ShapeProblem> find_shape_problem(const ModelShape& model) {
  if (const auto problem = find_router_problem(model)) return problem;
  if (model.num_moe_layers < 1 || model.num_moe_layers > model.num_layers) {
    return ShapeProblem{"num_moe_layers",
                        fmt::format("num_moe_layers is {}, but must be from 1 to num_layers, "
                                    "which is {}",
                                    model.num_moe_layers, model.num_layers)};
  }
  if (model.total_params.has_value() && *model.total_params < model.all_expert_params()) {
    return ShapeProblem{"total_params",
                        fmt::format("total_params is {}, fewer than the {} of the experts alone",
                                    *model.total_params, model.all_expert_params())};
  }
  return std::nullopt;
}

ModelShape read_model_shape(const YamlNode& node, const std::optional<ModelShape>& base) {
  const MapReader reader(node, model_shape_keys(), misplaced_key_advice);
  if (!base.has_value()) {
    for (const char* key :
         {"name", "hidden_dim", "ffn_dim", "num_experts", "top_k", "num_moe_layers"}) {
      reader.require(key);
    }
  }
  ModelShape model = base.value_or(ModelShape{});
  read_text(reader, "name", model.name);
  read_text(reader, "source", model.source);
  read_sizes(reader, base.has_value(), model);
  read_total_params(reader, base, model);
  if (const YamlNode* router = reader.find("router")) read_router(*router, model.router);
  if (const YamlNode* attention = reader.find("attention")) {
    read_attention(*attention, model.attention);
  }
  read_text(reader, "weight_dtype", model.weight_dtype);
  if (const std::optional<ShapeProblem> problem = find_shape_problem(model)) {
    const YamlNode* blamed = reader.find(problem->key);
    fail_at(blamed == nullptr ? node : *blamed, problem->text);
  }
  return model;
}

std::string model_shape_yaml(const ModelShape& model) {
  std::string text = optional_text("name", model.name) + optional_text("source", model.source);
  text += fmt::format(
      "hidden_dim: {}\nexpert_io_dim: {}\nffn_dim: {}\nnum_experts: {}\ntop_k: {}\n"
      "gemms_per_expert: {}\nshared_ffn_dim: {}\nnum_layers: {}\nnum_moe_layers: {}\n",
      model.hidden_dim, model.expert_io_dim, model.ffn_dim, model.num_experts, model.top_k,
      model.gemms_per_expert, model.shared_ffn_dim, model.num_layers, model.num_moe_layers);
  if (model.total_params.has_value()) {
    text += fmt::format("total_params: {}\n", *model.total_params);
  }
  const RouterShape& router = model.router;
  text += fmt::format(
      "router:\n  scoring: {}\n  renormalize: {}\n  scale: {}\n  num_groups: {}\n"
      "  topk_groups: {}\n  selection_bias: {}\n",
      scoring_names()[static_cast<std::size_t>(router.scoring)], router.renormalize, router.scale,
      router.num_groups, router.topk_groups, router.selection_bias);
  return text + attention_yaml(model.attention) + optional_text("weight_dtype", model.weight_dtype);
}

Json model_shape_json(const ModelShape& model) {
  const RouterShape& router = model.router;
  Json attention = {{"kind", model.attention.kind}};
  for (const KvField& field : kKvFields) {
    attention[field.key] = json_or_null(model.attention.*field.member);
  }
  return {{"name", model.name},
          {"source", model.source},
          {"hidden_dim", model.hidden_dim},
          {"expert_io_dim", model.expert_io_dim},
          {"ffn_dim", model.ffn_dim},
          {"num_experts", model.num_experts},
          {"top_k", model.top_k},
          {"gemms_per_expert", model.gemms_per_expert},
          {"shared_ffn_dim", model.shared_ffn_dim},
          {"num_layers", model.num_layers},
          {"num_moe_layers", model.num_moe_layers},
          {"total_params", json_or_null(model.total_params)},
          {"router",
           {{"scoring", scoring_names()[static_cast<std::size_t>(router.scoring)]},
            {"renormalize", router.renormalize},
            {"scale", router.scale},
            {"num_groups", router.num_groups},
            {"topk_groups", router.topk_groups},
            {"selection_bias", router.selection_bias}}},
          {"attention", attention},
          {"weight_dtype", model.weight_dtype}};
}

}  // namespace epsweep
