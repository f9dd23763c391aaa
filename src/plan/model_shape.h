// The shape of a model's MoE layers, and the model files of configs/models/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/top_k.h"
#include "plan/yaml_tree.h"

namespace epsweep {

// How router logits become scores. Which family uses which: src/plan/model_import_families.cc.
enum class Scoring {
  softmax,       // softmax over all experts, then top-k
  topk_softmax,  // top-k of the logits, softmax over the chosen ones (gpt-oss)
  sigmoid,       // DeepSeek-V3 and kin, Llama-4
  sqrtsoftplus,  // DeepSeek-V4: sqrt(softplus(logit))
};

// In the order of the enum.
const std::vector<std::string>& scoring_names();

struct RouterShape {
  Scoring scoring = Scoring::softmax;
  bool renormalize = false;     // divide the chosen scores by their sum
  double scale = 1.0;           // routed_scaling_factor
  int num_groups = 1;           // n_group; 1 means ungrouped
  int topk_groups = 1;          // topk_group
  bool selection_bias = false;  // a bias that takes part in the selection only

  // Published routers sum a group's two largest scores where they add a bias (DeepSeek-V3), and
  // take the largest where they do not (DeepSeek-V2), so this is not a fact of its own.
  GroupLimit group_limit() const {
    return {num_groups, topk_groups, selection_bias ? GroupScore::top2_sum : GroupScore::max};
  }
  // Scores rise with the logit, so without a bias logits choose the same experts (workload/router.h
  // has the rules).
  bool selects_by_logit() const { return scoring == Scoring::topk_softmax || !selection_bias; }
};

// What the KV cache of one token costs; whatever a config does not state stays absent.
struct AttentionShape {
  std::string kind;  // mla, gqa, mha, hybrid, ... as imported
  std::optional<std::int64_t> kv_heads, head_dim, kv_lora_rank, qk_rope_head_dim, kv_layers;
  std::optional<std::int64_t> kv_bytes_per_token;  // all layers, bf16; absent if not a constant
  // Layers beside kv_layers whose cache holds the last window_tokens tokens only.
  std::optional<std::int64_t> window_layers, window_tokens;
};

struct ModelShape {
  std::string name;
  std::string source;              // where the numbers come from
  std::int64_t hidden_dim = 0;     // width the router reads
  std::int64_t expert_io_dim = 0;  // width of an expert's input and output rows; a latent width for
                                   // some models, so exchange bytes use this and not hidden_dim
  std::int64_t ffn_dim = 0;        // inner width of one expert
  int num_experts = 0;
  int top_k = 0;
  int gemms_per_expert = 3;         // 3: gate, up, down (SwiGLU); 2: up, down (squared ReLU)
  std::int64_t shared_ffn_dim = 0;  // total width of the shared experts; 0 for none
  int num_layers = 0;
  int num_moe_layers = 0;
  // All parameters of the model, expert or not; absent where no source states them. Layers that
  // only predict draft tokens (MTP) are not counted.
  std::optional<std::int64_t> total_params;
  RouterShape router;
  AttentionShape attention;
  std::string weight_dtype;  // as published: bf16, fp8, mxfp4, ...; information only

  // Columns of the first grouped GEMM: gate and up beside each other, or up alone.
  std::int64_t gate_up_cols() const { return gemms_per_expert == 3 ? 2 * ffn_dim : ffn_dim; }
  // Parameters of one routed expert.
  std::int64_t expert_params() const { return gemms_per_expert * ffn_dim * expert_io_dim; }
  // Parameters of all routed experts of all layers.
  std::int64_t all_expert_params() const { return expert_params() * num_experts * num_moe_layers; }
};

// The largest values a model may have; together they keep the bytes of all experts within int64.
inline constexpr std::int64_t kMaxModelWidth = 131'072;
inline constexpr std::int64_t kMaxModelExperts = 16'384;
inline constexpr std::int64_t kMaxModelLayers = 1'024;
inline constexpr double kMinModelScale = 1e-6, kMaxModelScale = 1e6;

// A rule between the numbers of a shape that they break, and the key to blame.
struct ShapeProblem {
  std::string key, text;
};
std::optional<ShapeProblem> find_shape_problem(const ModelShape& model);
// The part of it that concerns the router: top_k and expert groups.
std::optional<ShapeProblem> find_router_problem(const ModelShape& model);

// Reads the map of a model file, or of an experiment's inline model. `base` gives the values of
// absent keys (an experiment that names a model and changes a few keys); without it the keys
// name, hidden_dim, ffn_dim, num_experts, top_k and num_moe_layers are required.
// Throws ConfigError with file, line and path; top_k must be in [1, num_experts].
ModelShape read_model_shape(const YamlNode& node, const std::optional<ModelShape>& base);

// The keys read_model_shape() knows.
const std::vector<std::string>& model_shape_keys();

// A model file's text for a shape; read_model_shape() of it gives the same shape.
std::string model_shape_yaml(const ModelShape& model);
Json model_shape_json(const ModelShape& model);

}  // namespace epsweep
