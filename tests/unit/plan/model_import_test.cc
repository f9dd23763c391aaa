#include "plan/model_import.h"

#include <set>

#include "published_configs.h"

namespace epsweep::testing {
namespace {

ImportedValue value_of(const ModelImport& result, const std::string& field) {
  for (const ImportedValue& value : result.values) {
    if (value.field == field) return value;
  }
  return {};
}

class PublishedConfig : public ::testing::TestWithParam<std::string> {};

TEST_P(PublishedConfig, ImportsToTheExpectedShape) {
  const Expectation row = read_expectations().at(GetParam());
  const Json config = config_of(row.at("facts_repo"));
  const ModelImport result = import_model(config.dump(), GetParam(), "config.json");
  EXPECT_EQ(result.model.name, GetParam());
  expect_shape(result.model, row);
  // The copies of these two lack the list of full-attention layers (hybrid_layer_pattern and
  // linear_attn_config); a number for them would be a guess.
  const std::set<std::string> no_layer_list = {"mimo-v2-flash", "kimi-k3"};
  if (no_layer_list.count(GetParam()) == 0) {
    expect_kv(result.model, row);
  } else {
    EXPECT_EQ(result.model.attention.kv_layers, std::nullopt);
    EXPECT_EQ(result.model.attention.kv_bytes_per_token, std::nullopt);
  }
  // The copies hold no torch_dtype, and Kimi-K2.5's "pack-quantized" leaves the bits open.
  const bool is_quantized =
      config.contains("quantization_config") ||
      config.value("/text_config/quantization_config"_json_pointer, Json()).is_object();
  const std::string dtype = GetParam() == "kimi-k2.5"         ? "pack-quantized"
                            : GetParam() == "qwen3-235b-a22b" ? "fp8"  // the copy is of the variant
                            : is_quantized                    ? row.at("weight_dtype")
                                                              : "";
  EXPECT_EQ(result.model.weight_dtype, dtype);
}

TEST_P(PublishedConfig, RecordsEveryFieldInOrder) {
  const std::vector<std::string> fields = {"hidden_dim",
                                           "expert_io_dim",
                                           "ffn_dim",
                                           "num_experts",
                                           "top_k",
                                           "gemms_per_expert",
                                           "shared_ffn_dim",
                                           "num_layers",
                                           "num_moe_layers",
                                           "router.scoring",
                                           "router.renormalize",
                                           "router.scale",
                                           "router.num_groups",
                                           "router.topk_groups",
                                           "router.selection_bias",
                                           "attention.kind",
                                           "attention.kv_heads",
                                           "attention.head_dim",
                                           "attention.kv_lora_rank",
                                           "attention.qk_rope_head_dim",
                                           "attention.kv_layers",
                                           "attention.kv_bytes_per_token",
                                           "attention.window_layers",
                                           "attention.window_tokens",
                                           "weight_dtype"};
  const ModelImport result =
      imported(config_of(read_expectations().at(GetParam()).at("facts_repo")));
  std::vector<std::string> recorded;
  for (const ImportedValue& value : result.values) {
    recorded.push_back(value.field);
    EXPECT_FALSE(value.key.empty()) << value.field;
  }
  EXPECT_EQ(recorded, fields);
}

TEST_P(PublishedConfig, SurvivesAModelFile) {
  const ModelShape model =
      imported(config_of(read_expectations().at(GetParam()).at("facts_repo"))).model;
  const std::string text = model_shape_yaml(model);
  const ModelShape read = read_model_shape(parse_yaml(text, "m.yaml"), std::nullopt);
  EXPECT_EQ(model_shape_json(read), model_shape_json(model)) << text;
}

std::vector<std::string> models_with_config() {
  std::vector<std::string> names;
  for (const auto& [name, row] : read_expectations()) {
    if (!row.at("facts_repo").empty()) names.push_back(name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, PublishedConfig, ::testing::ValuesIn(models_with_config()),
                         [](const auto& test) {
                           std::string name = test.param;
                           for (char& c : name) c = c == '-' || c == '.' ? '_' : c;
                           return name;
                         });

TEST(ModelImport, EveryCopiedConfigHasARow) {
  EXPECT_EQ(published().size(), 27U);
  EXPECT_EQ(models_with_config().size(), published().size());
}

struct KeyCase {
  const char *repo, *field, *key, *value;
};

TEST(ModelImport, NamesTheKeyOfEachValue) {
  const KeyCase cases[] = {
      {kV3, "num_experts", "n_routed_experts", "256"},
      {kV3, "router.selection_bias", "topk_method noaux_tc", "true"},
      {kV3, "num_moe_layers", "first_k_dense_replace + moe_layer_freq", "58"},
      {kKimiK3, "expert_io_dim", "text_config.routed_expert_hidden_size", "3584"},
      {kKimiK3, "shared_ffn_dim", "text_config.num_shared_experts x ffn_dim", "6144"},
      {kUltra, "expert_io_dim", "moe_latent_size", "2048"},
      {kUltra, "num_layers", "layers_block_type (length)", "108"},
      {kNano, "gemms_per_expert", "mlp_hidden_act relu2", "2"},
      {kGptOss, "top_k", "num_experts_per_tok + experts_per_token", "4"},
      {kGptOss, "ffn_dim", "intermediate_size", "2880"},
      {kGptOss, "router.scoring", "family rule for gpt_oss", "topk_softmax"},
      {kQwen3, "router.scoring", "family rule for qwen3_moe", "softmax"},
      {kMixtral, "num_moe_layers", "family rule for mixtral (all layers)", "32"},
      {kMixtral, "attention.head_dim", "hidden_size / num_attention_heads", "128"},
      {kM3, "ffn_dim", "moe_intermediate_size + intermediate_size", "3072"},
      {kM3, "num_moe_layers", "moe_layer_freq", "57"},
      {kMiMo, "router.scale", "family rule for mimo_v2_flash", "1"},
      {kMiMo, "attention.kv_layers", "not stated", ""},
  };
  for (const KeyCase& expected : cases) {
    const ImportedValue value = value_of(imported(config_of(expected.repo)), expected.field);
    EXPECT_EQ(value.key, expected.key) << expected.repo << " " << expected.field;
    EXPECT_EQ(value.value, expected.value) << expected.repo << " " << expected.field;
  }
}

struct LayerCase {
  const char *repo, *patch;
  int moe_layers;
};

TEST(ModelImport, CountsMoeLayersByEveryRule) {
  const LayerCase cases[] = {
      {kV3, R"({"first_k_dense_replace": 0})", 61},
      {kV3, R"({"moe_layer_freq": 2})", 29},         // 4, 6, ... 60
      {kQwen3, R"({"decoder_sparse_step": 5})", 9},  // 4, 9, ... 44; not 0, 5, ... 45
      {kQwen3, R"({"mlp_only_layers": [0, 5, 5]})", 46},
      {kQwen3, R"({"decoder_sparse_step": 2, "mlp_only_layers": [0, 1]})",
       23},  // 0 is dense anyway
      {kMaverick, R"({"text_config": {"interleave_moe_layer_step": 1}})", 48},
      {kHunyuan, R"({"moe_layer_num_skipped": 2})", 30},
      {kMixtral, R"({"moe_layer_start_index": 1, "moe_layer_end_index": 27,
                     "moe_layer_interval": 1})",
       27},
      {kMixtral, R"({"moe_layer_start_index": [1, 1], "moe_layer_end_index": 30,
                     "moe_layer_interval": 2})",
       15},  // 1, 3, ... 29
      {kMixtral, R"({"num_hidden_layers": 4,
                     "mlp_layer_types": ["dense", "sparse", "sparse", "dense"]})",
       2},
      {kNano, R"({"hybrid_override_pattern": "ME*-", "num_hidden_layers": null})", 1},
      {kNano, R"({"hybrid_override_pattern": "ME*E", "num_hidden_layers": 4,
                  "layers_block_type": ["mamba", "moe", "attention", "moe"]})",
       2},
  };
  for (const LayerCase& expected : cases) {
    const ModelImport result = imported(patched(expected.repo, expected.patch));
    EXPECT_EQ(result.model.num_moe_layers, expected.moe_layers) << expected.patch;
  }
}

TEST(ModelImport, CountsGrowingCachesByLayerLists) {
  Json mimo = config_of(kMiMo);  // 9 of 48 layers are full: keys of 192, values of 128
  for (int i = 0; i < 48; ++i) mimo["hybrid_layer_pattern"].push_back(i < 9 ? 0 : 1);
  EXPECT_EQ(imported(mimo).model.attention.kv_bytes_per_token, 23'040);
  Json kimi = config_of(kKimiK3);  // 24 of 93, numbered from 1
  for (int i = 1; i <= 24; ++i) {
    kimi["text_config"]["linear_attn_config"]["full_attn_layers"].push_back(4 * i - 3);
  }
  EXPECT_EQ(imported(kimi).model.attention.kv_bytes_per_token, 27'648);
  // An unknown window without a list: nothing is claimed.
  const ModelImport windowed = imported(patched(kQwen3, R"({"sliding_window": 4096})"));
  EXPECT_EQ(windowed.model.attention.kv_layers, std::nullopt);
  EXPECT_EQ(windowed.notes.front().find("the config does not list"), 0U);
  const Json unused = patched(kQwen3, R"({"sliding_window": 4096, "use_sliding_window": false})");
  EXPECT_EQ(imported(unused).model.attention.kv_layers, 48);
}

TEST(ModelImport, KeepsWindowsApartFromGrowingCaches) {
  const AttentionShape attention = imported(config_of(kGptOss)).model.attention;
  EXPECT_EQ(attention.window_layers, 12);
  EXPECT_EQ(attention.window_tokens, 128);
  EXPECT_EQ(attention.kv_layers, 12);
  EXPECT_EQ(imported(config_of(kV3)).model.attention.window_layers, std::nullopt);
}

TEST(ModelImport, NullIsAbsentAndEqualKeysAgree) {
  Json config = config_of(kV3);
  config["num_experts"] = 256;
  EXPECT_EQ(value_of(imported(config), "num_experts").key, "n_routed_experts + num_experts");
  config["n_routed_experts"] = nullptr;
  EXPECT_EQ(value_of(imported(config), "num_experts").key, "num_experts");
  config["text_config"] = {{"hidden_size", 7168}};
  EXPECT_EQ(value_of(imported(config), "hidden_dim").key, "text_config.hidden_size");
}

TEST(ModelImport, GroupsCountOnlyWhereTheRouterUsesThem) {
  const ModelImport greedy = imported(patched(kV3, R"({"topk_method": "greedy"})"));
  EXPECT_EQ(greedy.model.router.num_groups, 1);
  EXPECT_FALSE(greedy.model.router.selection_bias);
  const ModelImport ungrouped = imported(patched(kV3, R"({"use_grouped_topk": false})"));
  EXPECT_EQ(value_of(ungrouped, "router.num_groups").key, "use_grouped_topk false");
}

struct DtypeCase {
  const char *patch, *dtype;
};

TEST(ModelImport, NamesThePublishedWeightType) {
  const DtypeCase cases[] = {
      {R"({"torch_dtype": "bfloat16"})", "bf16"},
      {R"({"dtype": "float16", "torch_dtype": "float16"})", "fp16"},
      {R"({"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"}})", "nvfp4"},
      {R"({"quantization_config": {"quant_method": "compressed-tensors", "format": "pack-quantized",
           "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int"}}}}})",
       "int4"},
      {R"({"quantization_config": {"quant_method": "awq"}, "torch_dtype": "float16"})", "awq"},
      {R"({"expert_dtype": "fp4", "quantization_config": {"quant_method": "fp8"}})", "fp4"},
  };
  for (const DtypeCase& expected : cases) {
    EXPECT_EQ(imported(patched(kQwen3, expected.patch)).model.weight_dtype, expected.dtype)
        << expected.patch;
  }
}

}  // namespace
}  // namespace epsweep::testing
