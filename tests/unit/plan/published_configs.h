// tests/data/hf_config_facts.json: what published config files state.
#pragma once

#include <string>

#include "model_expectations.h"
#include "plan/model_import.h"

namespace epsweep::testing {

// Copies of what 27 published configs state, by repository.
inline const Json& published() {
  static const std::string path = source_path("tests/data/hf_config_facts.json");
  static const Json facts = parse_json(read_text_file(path), path);
  return facts;
}

inline Json config_of(const std::string& repo) {
  return published().at(repo).at("config");
}

inline ModelImport imported(const Json& config) {
  return import_model(config.dump(), "m", "config.json");
}

// A merge patch: null takes a key away.
inline Json patched(const std::string& repo, const std::string& patch) {
  Json config = config_of(repo);
  config.merge_patch(Json::parse(patch));
  return config;
}

inline constexpr const char* kV3 = "deepseek-ai/DeepSeek-V3";
inline constexpr const char* kQwen3 = "Qwen/Qwen3-30B-A3B";
inline constexpr const char* kGptOss = "openai/gpt-oss-20b";
inline constexpr const char* kMixtral = "mistralai/Mixtral-8x7B-v0.1";
inline constexpr const char* kMaverick = "meta-llama/Llama-4-Maverick-17B-128E-Instruct";
inline constexpr const char* kKimiK3 = "moonshotai/Kimi-K3";
inline constexpr const char* kHunyuan = "tencent/Hunyuan-A13B-Instruct";
inline constexpr const char* kNano = "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16";
inline constexpr const char* kUltra = "nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16";
inline constexpr const char* kMiMo = "XiaomiMiMo/MiMo-V2-Flash";
inline constexpr const char* kM3 = "MiniMaxAI/MiniMax-M3";

}  // namespace epsweep::testing
