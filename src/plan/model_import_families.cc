#include "plan/model_import_families.h"

namespace epsweep {
namespace {

using Shared = ModelFamily::Shared;
using Attention = ModelFamily::Attention;

const char* const kSharedGateNote =
    "the shared expert's output is multiplied by a gate of its own, which is not modelled";

// Softmax over all experts, no bias, no factor, no groups: what Mixtral began.
ModelFamily softmax_family(const std::string& model_type) {
  ModelFamily family;
  family.model_type = model_type;
  family.scoring = Scoring::softmax;
  family.selection_bias = false;
  family.scale = 1.0;
  family.ungrouped = true;
  return family;
}

ModelFamily mixtral_like(const std::string& model_type, std::optional<bool> renormalize) {
  ModelFamily family = softmax_family(model_type);
  family.renormalize = renormalize;
  family.experts_use_intermediate = true;
  family.all_layers_moe = true;
  family.shared = Shared::none;
  family.attention = Attention::full;
  return family;
}

ModelFamily qwen_like(const std::string& model_type, Shared shared, Attention attention) {
  ModelFamily family = softmax_family(model_type);
  family.shared = shared;
  family.attention = attention;
  if (shared == Shared::stated) family.notes = {kSharedGateNote};
  return family;
}

// The config has neither norm_topk_prob nor decoder_sparse_step: the router always divides by the
// sum, and every layer has experts.
ModelFamily qwen3_5(const std::string& model_type) {
  ModelFamily family = qwen_like(model_type, Shared::stated, Attention::listed);
  family.renormalize = true;
  family.all_layers_moe = true;
  return family;
}

ModelFamily gpt_oss() {
  ModelFamily family = mixtral_like("gpt_oss", true);
  family.scoring = Scoring::topk_softmax;
  family.attention = Attention::listed;
  family.notes = {"the router's linear layer has a bias, which is part of the logits"};
  return family;
}

ModelFamily phimoe() {
  ModelFamily family = mixtral_like("phimoe", false);
  family.notes = {
      "the sparse-mixer router (two argmax steps with a jitter threshold) is not modelled; plain "
      "softmax top-k stands in"};
  return family;
}

ModelFamily llama4(const std::string& model_type) {
  ModelFamily family = softmax_family(model_type);
  family.scoring = Scoring::sigmoid;
  family.renormalize = false;
  family.experts_use_intermediate = true;
  family.shared = Shared::one_expert;
  family.attention = Attention::full;
  family.notes = {
      "the score multiplies an expert's input, not its output",
      "layers of chunked local attention stop growing at the chunk; they are counted as growing "
      "unless layer_types names them"};
  return family;
}

ModelFamily gemma4(const std::string& model_type) {
  ModelFamily family = softmax_family(model_type);
  family.renormalize = true;
  family.gated = true;
  family.all_layers_moe = true;
  family.shared = Shared::dense_block;
  family.attention = Attention::listed;
  family.notes = {"each expert's weight is multiplied by a learned factor, which is not modelled"};
  return family;
}

// DeepSeek-V3's router without groups: sigmoid scores, a bias for the selection.
ModelFamily biased_sigmoid(const std::string& model_type) {
  ModelFamily family;
  family.model_type = model_type;
  family.scoring = Scoring::sigmoid;
  family.selection_bias = true;
  return family;
}

ModelFamily minimax(const std::string& model_type) {
  ModelFamily family = biased_sigmoid(model_type);
  family.renormalize = true;
  family.ungrouped = true;
  family.experts_use_intermediate = true;
  return family;
}

ModelFamily minimax_m2() {
  ModelFamily family = minimax("minimax_m2");
  family.scale = 1.0;
  family.all_layers_moe = true;
  family.shared = Shared::none;
  return family;
}

ModelFamily minimax_m3() {
  ModelFamily family = minimax("minimax_m3");
  family.notes = {"whether the chosen scores are divided by their sum is taken from MiniMax-M2",
                  "the keys of the sparse-attention indexer are not counted in the KV cache"};
  return family;
}

ModelFamily step3p7() {
  ModelFamily family = biased_sigmoid("step3p7");
  family.renormalize = true;
  family.ungrouped = true;
  family.gated = true;
  family.attention = Attention::listed;
  return family;
}

ModelFamily mimo() {
  ModelFamily family = biased_sigmoid("mimo_v2_flash");
  family.scale = 1.0;
  family.shared = Shared::none;
  family.attention = Attention::listed;
  return family;
}

ModelFamily nemotron_h() {
  ModelFamily family = biased_sigmoid("nemotron_h");
  family.attention = Attention::listed;
  return family;
}

ModelFamily ernie() {
  ModelFamily family = softmax_family("ernie4_5_moe");
  family.renormalize = true;
  family.selection_bias = true;
  return family;
}

ModelFamily deepseek_v1() {
  ModelFamily family = softmax_family("deepseek");
  return family;
}

ModelFamily deepseek_v2() {
  ModelFamily family;
  family.model_type = "deepseek_v2";
  family.selection_bias = false;
  return family;
}

ModelFamily deepseek_v4() {
  ModelFamily family;
  family.model_type = "deepseek_v4";
  family.ungrouped = true;
  family.all_layers_moe = true;
  family.attention = Attention::compressed;
  return family;
}

ModelFamily kimi_linear() {
  ModelFamily family;
  family.model_type = "kimi_linear";
  family.attention = Attention::listed;
  return family;
}

ModelFamily hunyuan(const std::string& model_type) {
  return softmax_family(model_type);
}

const std::vector<ModelFamily>& families() {
  static const std::vector<ModelFamily> table = {
      mixtral_like("mixtral", true),
      mixtral_like("olmoe", std::nullopt),
      phimoe(),
      gpt_oss(),
      qwen_like("qwen2_moe", Shared::stated, Attention::full),
      qwen_like("qwen3_moe", Shared::none, Attention::plain),
      qwen_like("qwen3_next", Shared::stated, Attention::listed),
      qwen3_5("qwen3_5_moe"),
      qwen3_5("qwen3_5_moe_text"),
      llama4("llama4"),
      llama4("llama4_text"),
      gemma4("gemma4"),
      gemma4("gemma4_text"),
      deepseek_v1(),
      deepseek_v2(),
      deepseek_v4(),
      kimi_linear(),
      biased_sigmoid("glm4_moe"),
      minimax_m2(),
      minimax_m3(),
      step3p7(),
      mimo(),
      nemotron_h(),
      ernie(),
      hunyuan("hunyuan"),
      hunyuan("hunyuan_v1_moe"),
  };
  return table;
}

}  // namespace

ModelFamily find_model_family(const std::vector<std::string>& model_types) {
  for (const std::string& model_type : model_types) {
    for (const ModelFamily& family : families()) {
      if (family.model_type == model_type) return family;
    }
  }
  ModelFamily family;
  family.model_type = model_types.empty() ? "(none)" : model_types.front();
  return family;
}

}  // namespace epsweep
