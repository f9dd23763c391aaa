#include "costs/kv.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace epsweep {
namespace {

ModelShape shipped(const std::string& name) {
  const std::string path = EPSWEEP_SOURCE_DIR "/configs/models/" + name + ".yaml";
  return read_model_shape(parse_yaml(read_text_file(path), path), std::nullopt);
}

struct KvCase {
  const char* model;
  std::int64_t growing, window;
};

// All layers, bf16, by kind: (512 + 64) * 2 * 61; 2 * heads * dim * 2 * layers; 12 of 48 layers;
// gpt-oss: 18 layers grow and 18 hold 128 tokens, 73,728 together.
constexpr KvCase kCases[] = {
    {"deepseek-v3", 70'272, 0},
    {"kimi-k2", 70'272, 0},
    {"kimi-k3", 27'648, 0},
    {"qwen3-235b-a22b", 192'512, 0},
    {"qwen3-coder-480b-a35b", 253'952, 0},
    {"minimax-m2", 253'952, 0},
    {"glm-4.5", 376'832, 0},
    {"qwen3-next-80b-a3b", 24'576, 0},
    {"qwen3.5-397b-a17b", 30'720, 0},
    {"nemotron-3-super", 8'192, 0},
    {"gpt-oss-120b", 36'864, 36'864},
    {"gpt-oss-20b", 24'576, 24'576},
};

TEST(Kv, BytesPerTokenOfShippedModels) {
  for (const KvCase& expected : kCases) {
    const KvCost cost = kv_cost(shipped(expected.model).attention, KvDType::bf16);
    EXPECT_EQ(cost.unknown, "") << expected.model;
    EXPECT_EQ(cost.growing_bytes, expected.growing) << expected.model;
    EXPECT_EQ(cost.window_bytes, expected.window) << expected.model;
  }
}

TEST(Kv, TheTotalFollowsFromItsParts) {
  for (const KvCase& expected : kCases) {
    AttentionShape attention = shipped(expected.model).attention;
    attention.kv_bytes_per_token.reset();
    EXPECT_EQ(kv_cost(attention, KvDType::bf16).growing_bytes, expected.growing) << expected.model;
    EXPECT_EQ(kv_cost(attention, KvDType::fp8).growing_bytes, expected.growing / 2);
  }
}

TEST(Kv, WindowsStopGrowing) {
  const KvCost cost = kv_cost(shipped("gpt-oss-120b").attention, KvDType::bf16);
  EXPECT_EQ(kv_bytes_of_sequence(cost, 100), 100 * 73'728);
  EXPECT_EQ(kv_bytes_of_sequence(cost, 4096), 4096LL * 36'864 + 128 * 36'864);
  const KvCost full = kv_cost(shipped("deepseek-v3").attention, KvDType::bf16);
  EXPECT_EQ(kv_bytes_of_sequence(full, 4096), 4096LL * 70'272);
}

TEST(Kv, WhatHasNoConstantIsUnknownAndNotZero) {
  const KvCost compressed = kv_cost(shipped("deepseek-v4-pro").attention, KvDType::bf16);
  EXPECT_NE(compressed.unknown.find("compressed by context"), std::string::npos);
  EXPECT_FALSE(kv_cost(AttentionShape{}, KvDType::bf16).unknown.empty());
  AttentionShape attention;
  attention.kind = "gqa";
  attention.kv_layers = 4;
  attention.kv_heads = 2;  // and no head_dim
  EXPECT_FALSE(kv_cost(attention, KvDType::bf16).unknown.empty());
}

TEST(Kv, SaysWhatItLeavesOut) {
  EXPECT_NE(kv_cost(shipped("glm-5").attention, KvDType::bf16).note.find("indexer"),
            std::string::npos);
  EXPECT_NE(kv_cost(shipped("qwen3-next-80b-a3b").attention, KvDType::bf16).note.find("linear"),
            std::string::npos);
  EXPECT_EQ(kv_cost(shipped("deepseek-v3").attention, KvDType::bf16).note, "");
}

TEST(Kv, AbsurdAmountsDoNotOverflow) {
  EXPECT_EQ(capped_product(3, 4), 12);
  EXPECT_EQ(capped_product(std::int64_t{1} << 40, std::int64_t{1} << 40), std::int64_t{1} << 60);
}

}  // namespace
}  // namespace epsweep
