// What the importer must refuse, and what it must say.
#include "base/error.h"
#include "published_configs.h"

namespace epsweep::testing {
namespace {

// The message of the refusal; "" if there was none.
std::string refusal(const Json& config) {
  try {
    imported(config);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

struct PatchCase {
  const char *repo, *patch;
  std::vector<const char*> parts;  // of the message
};

void expect_refusals(const std::vector<PatchCase>& cases) {
  for (const PatchCase& fault : cases) {
    const std::string message = refusal(patched(fault.repo, fault.patch));
    EXPECT_NE(message.find("config.json: "), std::string::npos) << fault.patch;
    for (const char* part : fault.parts) {
      EXPECT_NE(message.find(part), std::string::npos) << fault.patch << "\n  " << message;
    }
  }
}

TEST(ModelImport, RefusesKeysThatDisagree) {
  expect_refusals({
      {kV3, R"({"num_experts": 128})", {"'n_routed_experts' says 256 but 'num_experts' says 128"}},
      {kGptOss,
       R"({"experts_per_token": 8})",
       {"'num_experts_per_tok' says 4 but 'experts_per_token' says 8"}},
      {kM3, R"({"intermediate_size": 12288})", {"'moe_intermediate_size' says 3072", "12288"}},
      {kM3, R"({"shared_intermediate_size": 0})", {"'n_shared_experts' says 1", "not clear"}},
      {kKimiK3,
       R"({"text_config": {"share_expert_dim": 3072}})",
       {"num_shared_experts' says 2", "share_expert_dim' says 3072", "not clear"}},
      {kMaverick,
       R"({"hidden_size": 4096})",
       {"'hidden_size' says 4096 but 'text_config.hidden_size' says 5120"}},
      {kV3, R"({"use_routing_bias": false})", {"'use_routing_bias' says false", "noaux_tc"}},
      {kV3,
       R"({"moe_renormalize": false})",
       {"'norm_topk_prob' says true but 'moe_renormalize' says false"}},
      {kNano, R"({"layers_block_type": ["moe", "mamba"]})", {"lists 2 layers", "says 52"}},
      {kM3,
       R"({"first_k_dense_replace": 4})",
       {"'moe_layer_freq' gives layer 3 experts but 'first_k_dense_replace' does not"}},
      {"Qwen/Qwen3.5-397B-A17B",
       R"({"text_config": {"full_attention_interval": 6}})",
       {"full_attention_interval' leaves 10", "layer_types' 15"}},
  });
}

TEST(ModelImport, RefusesWhatNeitherConfigNorFamilySays) {
  expect_refusals({
      {kV3, R"({"hidden_size": null})", {"looked for hidden_size"}},
      {kV3, R"({"num_experts_per_tok": null})", {"num_experts_per_tok, num_experts_per_token"}},
      // The width of the dense layers is no expert's width.
      {kV3, R"({"moe_intermediate_size": null})", {"looked for moe_intermediate_size"}},
      {kV3,
       R"({"n_group": null, "scoring_func": null})",
       {"'deepseek_v3'", "router.scoring (add scoring_func or", "router.num_groups (add n_group"}},
      {kV3, R"({"routed_scaling_factor": null})", {"router.scale (add routed_scaling_factor"}},
      {kV3, R"({"n_shared_experts": null})", {"shared_ffn_dim (add n_shared_experts"}},
      {kV3, R"({"hidden_act": "gelu"})", {"gemms_per_expert (add hidden_act: silu"}},
      {kQwen3,
       R"({"model_type": "new_moe"})",
       {"'new_moe'", "add scoring_func or moe_router_activation_func"}},
      {"allenai/OLMoE-1B-7B-0125", R"({"norm_topk_prob": null})", {"router.renormalize"}},
      {kV3, R"({"num_hidden_layers": null})", {"number of layers", "num_hidden_layers"}},
      {kV3,
       R"({"first_k_dense_replace": null})",
       {"not settled", "by moe_layer_freq alone", "looked for first_k_dense_replace"}},
      {kQwen3, R"({"decoder_sparse_step": null})", {"not settled", "by mlp_only_layers alone"}},
  });
}

TEST(ModelImport, RefusesDenseModels) {
  expect_refusals({
      {kV3, R"({"n_routed_experts": null})", {"has no experts", "num_local_experts"}},
      {kQwen3, R"({"num_experts": 0})", {"has no experts", "num_experts is 0"}},
      {"google/gemma-4-26B-A4B",
       R"({"text_config": {"enable_moe_block": false}})",
       {"has no experts", "enable_moe_block is false"}},
      {kV3, R"({"first_k_dense_replace": 61})", {"no layer has experts"}},
  });
}

TEST(ModelImport, RefusesMalformedValues) {
  expect_refusals({
      {kV3, R"({"n_routed_experts": "256"})", {"n_routed_experts", "whole number", "\"256\""}},
      {kV3, R"({"hidden_size": -1})", {"hidden_size: -1 is outside 1"}},
      {kV3, R"({"hidden_size": 7168.5})", {"hidden_size: expected a whole number"}},
      {kV3, R"({"hidden_size": 18446744073709551615})", {"hidden_size: expected a whole number"}},
      {kV3, R"({"hidden_size": true})", {"hidden_size: expected a whole number"}},
      {kV3, R"({"num_experts_per_tok": 257})", {"top_k is 257", "num_experts", "256"}},
      {kV3, R"({"topk_group": 9})", {"topk_groups is 9", "num_groups, which is 8"}},
      {kV3, R"({"norm_topk_prob": 1})", {"norm_topk_prob: expected true or false"}},
      {kV3, R"({"scoring_func": "tanh"})", {"scoring_func: unknown scoring 'tanh'", "sigmoid"}},
      {kV3, R"({"topk_method": "best"})", {"topk_method: unknown method 'best'"}},
      {kV3, R"({"routed_scaling_factor": 0})", {"routed_scaling_factor: 0 is outside"}},
      {kV3, R"({"routed_scaling_factor": "2.5"})", {"routed_scaling_factor: expected a number"}},
      {kV3, R"({"moe_layer_freq": 0})", {"moe_layer_freq: 0 is outside 1"}},
      {kV3, R"({"quantization_config": "fp8"})", {"quantization_config: expected an object"}},
      {kHunyuan, R"({"moe_topk": [8, 4]})", {"moe_topk", "different values (8 and 4)"}},
      {kHunyuan, R"({"moe_topk": []})", {"moe_topk: expected a whole number"}},
      {kMiMo, R"({"moe_layer_freq": [0, 1, 2]})", {"moe_layer_freq: 2 is outside 0 to 1"}},
      {kMiMo, R"({"moe_layer_freq": [0, 1]})", {"moe_layer_freq lists 2 layers", "says 48"}},
      {kNano, R"({"hybrid_override_pattern": "MEX"})", {"hybrid_override_pattern", "'X'"}},
      {kUltra, R"({"layers_block_type": ["moe", "gru"]})", {"layers_block_type", "'gru'"}},
      {kGptOss, R"({"layer_types": ["full_attention"]})", {"layer_types lists 1 layers"}},
      {kGptOss, R"({"layer_types": ["odd"]})", {"layer_types: unknown layer type 'odd'"}},
      {kQwen3, R"({"mlp_only_layers": [48]})", {"mlp_only_layers: 48 is outside 0 to 47"}},
      {kQwen3, R"({"text_config": []})", {"text_config: expected an object"}},
      {kV3, R"({"model_type": 3})", {"model_type: expected a word"}},
  });
  Json endless = config_of(kUltra);
  endless["layers_block_type"] = std::vector<std::string>(1025, "moe");
  EXPECT_NE(refusal(endless).find("says 1025 layers; at most 1024"), std::string::npos);
  EXPECT_NE(refusal(Json::array()).find("expected a JSON object"), std::string::npos);
  EXPECT_THROW(import_model("{", "m", "config.json"), ConfigError);
}

// Whatever stands under a key, the import ends in a refusal or in a shape that a model file can
// hold.
TEST(ModelImport, AnyValueIsRefusedOrGivesAValidShape) {
  const Json odd_values = Json::parse(
      R"([null, true, 0, 1, -1, 2.5, 1e300, 9223372036854775807, 18446744073709551615, "", "x",
          [], [0], ["x"], [[1]], {}, {"a": 1}])");
  int imported_anyway = 0;
  for (const auto& [repo, entry] : published().items()) {
    const bool is_nested = entry.at("config").contains("text_config");
    const Json& facts = is_nested ? entry.at("config").at("text_config") : entry.at("config");
    for (const auto& [key, value] : facts.items()) {
      for (const Json& odd : odd_values) {
        Json config = entry.at("config");
        (is_nested ? config["text_config"] : config)[key] = odd;
        if (!refusal(config).empty()) continue;
        ++imported_anyway;
        const std::string text = model_shape_yaml(imported(config).model);
        EXPECT_NO_THROW(read_model_shape(parse_yaml(text, "m.yaml"), std::nullopt))
            << repo << " " << key << " " << odd << "\n"
            << text;
      }
    }
  }
  EXPECT_GT(imported_anyway, 0);  // keys that do not matter, and null where a rule steps in
}

}  // namespace
}  // namespace epsweep::testing
