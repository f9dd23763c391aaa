// What a deployment keeps in memory beside the expert layer: the `serving` part of an experiment.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "plan/yaml_tree.h"

namespace epsweep {

enum class KvDType { bf16, fp8 };
inline const std::vector<std::string> kKvDTypeNames = {"bf16", "fp8"};
inline const std::string& to_string(KvDType dtype) {
  return kKvDTypeNames[static_cast<std::size_t>(dtype)];
}

inline const std::string kAsPublished = "as_published";

// Attention is data-parallel: each rank has sequences of its own and all non-expert weights.
struct Serving {
  std::int64_t context_tokens = 4096;  // of a sequence in the KV cache: prompt and output
  int draft_tokens = 0;                // of a sequence and step, beside the one that is certain
  double memory_fraction = 0.9;        // of the hardware's memory, in (0, 1]
  KvDType kv_dtype = KvDType::bf16;
  std::string weight_dtype = kAsPublished;  // or a weight format's name
  // Of everything but routed experts. as_published: bf16 where the experts' format covers experts
  // only, else the experts' format.
  std::string non_expert_weight_dtype = kAsPublished;
  std::int64_t reserve_bytes = 0;  // of a rank, for whatever else the framework holds

  // Tokens one sequence puts into a step.
  std::int64_t tokens_per_sequence() const { return 1 + draft_tokens; }
};

// Throws ConfigError.
Serving read_serving(const YamlNode& node);
const std::vector<std::string>& serving_keys();
Json serving_json(const Serving& serving);

}  // namespace epsweep
