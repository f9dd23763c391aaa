#include "plan/model_shape.h"

#include <algorithm>

#include "base/error.h"
#include "model_expectations.h"

namespace epsweep::testing {
namespace {

constexpr const char* kSmall =
    "name: small\nhidden_dim: 64\nffn_dim: 32\nnum_experts: 8\ntop_k: 2\nnum_moe_layers: 4\n";

ModelShape read(const std::string& text, const std::optional<ModelShape>& base = std::nullopt) {
  return read_model_shape(parse_yaml(text, "m.yaml"), base);
}

std::string refusal(const std::string& text, const std::optional<ModelShape>& base = std::nullopt) {
  try {
    read(text, base);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

std::vector<std::string> shipped_files() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(source_path("configs/models"))) {
    paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

class ShippedModel : public ::testing::TestWithParam<std::string> {};

TEST_P(ShippedModel, MatchesItsExpectedNumbers) {
  const ModelShape model = read(read_text_file(GetParam()));
  EXPECT_EQ(model.name + ".yaml", std::filesystem::path(GetParam()).filename().string());
  const auto rows = read_expectations();
  ASSERT_EQ(rows.count(model.name), 1U);
  const Expectation& row = rows.at(model.name);
  expect_shape(model, row);
  expect_kv(model, row);
  EXPECT_EQ(model.weight_dtype, row.at("weight_dtype"));
  EXPECT_EQ(model.source.find(row.at("source")), 0U) << model.source;
}

TEST_P(ShippedModel, IsWhatTheWriterWrites) {
  const std::string text = read_text_file(GetParam());
  const ModelShape model = read(text);
  EXPECT_EQ(model_shape_yaml(model), text);
  EXPECT_EQ(model_shape_json(read(model_shape_yaml(model))), model_shape_json(model));
}

INSTANTIATE_TEST_SUITE_P(All, ShippedModel, ::testing::ValuesIn(shipped_files()),
                         [](const auto& test) {
                           std::string name = std::filesystem::path(test.param).stem().string();
                           for (char& c : name) c = c == '-' || c == '.' ? '_' : c;
                           return name;
                         });

TEST(ModelShape, EnoughModelsAreShipped) {
  EXPECT_GE(shipped_files().size(), 17U);
}

TEST(ModelShape, TwoGemmExpertsHaveNoGate) {
  const ModelShape gated = read(kSmall);
  EXPECT_EQ(gated.gate_up_cols(), 64);
  EXPECT_EQ(gated.expert_params(), 3 * 64 * 32);
  const ModelShape plain = read(std::string(kSmall) + "gemms_per_expert: 2\nexpert_io_dim: 16\n");
  EXPECT_EQ(plain.gate_up_cols(), 32);
  EXPECT_EQ(plain.expert_params(), 2 * 16 * 32);
}

TEST(ModelShape, AbsentKeysFollowOthers) {
  const ModelShape model = read(kSmall);
  EXPECT_EQ(model.expert_io_dim, 64);
  EXPECT_EQ(model.num_layers, 4);
  EXPECT_EQ(model.router.scoring, Scoring::softmax);
  EXPECT_EQ(model.attention.kv_bytes_per_token, std::nullopt);
}

TEST(ModelShape, ABaseSuppliesWhatIsAbsent) {
  ModelShape base = read(std::string(kSmall) +
                         "router: {scoring: sigmoid, scale: 2.5}\n"
                         "attention: {kind: mha, kv_heads: 4, kv_layers: 4, "
                         "kv_bytes_per_token: 999}\nweight_dtype: fp8\n");
  const ModelShape same = read("{}", base);
  EXPECT_EQ(model_shape_json(same), model_shape_json(base));
  const ModelShape changed = read("hidden_dim: 128\nrouter: {scale: 1.5}\n", base);
  EXPECT_EQ(changed.expert_io_dim, 128);  // no latent in the base, so it follows
  EXPECT_EQ(changed.router.scoring, Scoring::sigmoid);
  EXPECT_DOUBLE_EQ(changed.router.scale, 1.5);
  EXPECT_EQ(changed.attention.kv_bytes_per_token, 999);
  base.expert_io_dim = 16;
  EXPECT_EQ(read("hidden_dim: 128\n", base).expert_io_dim, 16);
}

// A total that belonged to other facts must not survive them.
TEST(ModelShape, ChangedAttentionDropsTheBasesTotal) {
  const ModelShape base = read(std::string(kSmall) +
                               "attention: {kv_heads: 4, kv_layers: 4, kv_bytes_per_token: 999}\n");
  const ModelShape heads = read("attention: {kv_heads: 2}\n", base);
  EXPECT_EQ(heads.attention.kv_layers, 4);
  EXPECT_EQ(heads.attention.kv_bytes_per_token, std::nullopt);
  const ModelShape layers = read("num_layers: 8\n", base);
  EXPECT_EQ(layers.attention.kv_layers, std::nullopt);
  EXPECT_EQ(layers.attention.kv_bytes_per_token, std::nullopt);
  const ModelShape stated =
      read("num_layers: 8\nattention: {kv_layers: 8, kv_bytes_per_token: 1998}\n", base);
  EXPECT_EQ(stated.attention.kv_layers, 8);
  EXPECT_EQ(stated.attention.kv_bytes_per_token, 1998);
}

TEST(ModelShape, ChangedSizesDropTheBasesTotalParams) {
  const ModelShape base = read(std::string(kSmall) + "total_params: 1000000\n");
  EXPECT_EQ(read("name: other\n", base).total_params, 1'000'000);
  EXPECT_EQ(read("ffn_dim: 16\n", base).total_params, std::nullopt);
  EXPECT_EQ(read("num_moe_layers: 2\n", base).total_params, std::nullopt);
  EXPECT_EQ(read("ffn_dim: 16\ntotal_params: 999999\n", base).total_params, 999'999);
}

struct TotalCase {
  const char* model;
  std::int64_t heads, vocab, extra;  // extra: norms inside attention and biases, of one layer
};

// Grouped-query models whose layers are all MoE: attention, two norms, router and experts of every
// layer, input and output embeddings, one norm.
TEST(ModelShape, TotalParamsOfShippedModelsAddUp) {
  const TotalCase cases[] = {
      {"qwen3-30b-a3b", 32, 151'936, 256},         {"qwen3-235b-a22b", 64, 151'936, 256},
      {"qwen3-coder-480b-a35b", 96, 151'936, 256}, {"mixtral-8x7b", 32, 32'000, 0},
      {"olmoe-1b-7b", 16, 50'304, 4096},           {"minimax-m2", 48, 200'064, 6144 + 1024 + 256}};
  for (const TotalCase& expected : cases) {
    const ModelShape model = read(
        read_text_file(source_path(std::string("configs/models/") + expected.model + ".yaml")));
    const std::int64_t hidden = model.hidden_dim, dim = *model.attention.head_dim;
    const std::int64_t attention =
        2 * hidden * expected.heads * dim + 2 * hidden * *model.attention.kv_heads * dim;
    const std::int64_t layer = attention + 2 * hidden + model.num_experts * hidden +
                               expected.extra + model.num_experts * model.expert_params();
    EXPECT_EQ(model.total_params, model.num_layers * layer + 2 * expected.vocab * hidden + hidden)
        << expected.model;
  }
}

TEST(ModelShape, RequiredKeysAreNamed) {
  const std::string small = kSmall;
  for (const char* key :
       {"name", "hidden_dim", "ffn_dim", "num_experts", "top_k", "num_moe_layers"}) {
    const std::size_t begin = small.find(std::string(key) + ":");
    std::string text = small;
    text.erase(begin, small.find('\n', begin) + 1 - begin);
    EXPECT_NE(refusal(text).find(std::string("'") + key + "' is missing"), std::string::npos)
        << key << ": " << refusal(text);
  }
}

struct ShapeFault {
  const char *lines, *place, *part;
};

TEST(ModelShape, RefusesWhatCannotBe) {
  const ShapeFault faults[] = {
      {"top_k: 9", "m.yaml:1: top_k:", "top_k is 9, but must be from 1 to num_experts, which is 8"},
      {"top_k: 0", "m.yaml:1: top_k:", "0 is outside 1"},
      {"num_experts: 1", "m.yaml:1", "top_k is 2, but must be from 1 to num_experts, which is 1"},
      {"num_experts: 16385", "m.yaml:1: num_experts:", "outside 1 to 16384"},
      {"hidden_dim: 0", "m.yaml:1: hidden_dim:", "0 is outside 1"},
      {"hidden_dim: 131073", "m.yaml:1: hidden_dim:", "outside 1 to 131072"},
      {"expert_io_dim: 1.5", "m.yaml:1: expert_io_dim:", "whole number"},
      {"ffn_dim: -4", "m.yaml:1: ffn_dim:", "-4 is outside 1"},
      {"shared_ffn_dim: -1", "m.yaml:1: shared_ffn_dim:", "-1 is outside 0"},
      {"gemms_per_expert: 4", "m.yaml:1: gemms_per_expert:", "4 is outside 2 to 3"},
      {"num_moe_layers: 5", "m.yaml:1: num_moe_layers:",
       "num_moe_layers is 5, but must be from 1 to num_layers, which is 4"},
      {"total_params: 196607", "m.yaml:1: total_params:", "fewer than the 196608 of the experts"},
      {"num_layers: 3", "m.yaml:1", "from 1 to num_layers, which is 3"},
      {"num_layers: 1025", "m.yaml:1: num_layers:", "outside 1 to 1024"},
      {"router: {num_groups: 3}",
       "m.yaml:1: router:", "num_experts is 8, which does not divide into num_groups, which is 3"},
      {"router: {num_groups: 2, topk_groups: 3}",
       "m.yaml:1: router:", "topk_groups is 3, but must be from 1 to num_groups, which is 2"},
      {"router: {num_groups: 8, topk_groups: 1}",
       "m.yaml:1: router:", "topk_groups 1 of 8 groups hold only 1 experts"},
      {"router: {scoring: sigmoyd}", "m.yaml:1: router.scoring:", "nearest: 'sigmoid'"},
      {"router: {scale: 0}", "m.yaml:1: router.scale:", "0 is outside"},
      {"router: {renormalize: 1}", "m.yaml:1: router.renormalize:", "true or false"},
      {"attention: {kv_heads: 0}", "m.yaml:1: attention.kv_heads:", "0 is outside 1"},
      {"attention: mla", "m.yaml:1: attention:", "expected a map"},
      {"scoring: sigmoid", "m.yaml:1: scoring:", "it belongs under 'router'"},
      {"kv_heads: 4", "m.yaml:1: kv_heads:", "it belongs under 'attention'"},
      {"hiden_dim: 64", "m.yaml:1: hiden_dim:", "nearest valid key: 'hidden_dim'"},
  };
  const ModelShape base = read(kSmall);
  for (const ShapeFault& fault : faults) {
    const std::string message = refusal(fault.lines, base);
    EXPECT_EQ(message.find(fault.place), 0U) << fault.lines << "\n  " << message;
    EXPECT_NE(message.find(fault.part), std::string::npos) << fault.lines << "\n  " << message;
  }
}

TEST(ModelShape, TheLargestModelFitsInt64) {
  const ModelShape largest = read(
      "name: largest\nhidden_dim: 131072\nffn_dim: 131072\nnum_experts: 16384\ntop_k: 16384\n"
      "num_moe_layers: 1024\n");
  std::int64_t bytes = 0;
  EXPECT_FALSE(__builtin_mul_overflow(largest.expert_params() * 4,
                                      std::int64_t{largest.num_experts} * largest.num_moe_layers,
                                      &bytes));
}

TEST(ModelShape, AwkwardTextSurvives) {
  ModelShape model = read(kSmall);
  for (const char* text :
       {"null", "-", "---", "a: b # c", "\"quoted\"", "line\nbreak", "7", "- x", "äöü \\"}) {
    model.source = text;
    EXPECT_EQ(read(model_shape_yaml(model)).source, text);
  }
  model.router.scale = 2.827;
  EXPECT_DOUBLE_EQ(read(model_shape_yaml(model)).router.scale, 2.827);
}

TEST(ModelShape, JsonHoldsEveryKey) {
  const Json json = model_shape_json(read(kSmall));
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  EXPECT_EQ(keys, model_shape_keys());
  EXPECT_TRUE(json.at("attention").at("kv_layers").is_null());
  EXPECT_EQ(json.at("router").at("scoring"), "softmax");
}

}  // namespace
}  // namespace epsweep::testing
