// The router's top-k and weights; twin of src/cpu/router_op.h. C++17.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "cuda/kernels/element_type.h"

namespace epsweep::cuda {

// In the order of ScoreFunction and GroupScore of the host.
enum class RouterScore { softmax, topk_softmax, sigmoid, sqrtsoftplus };
enum class RouterGroupScore { max, top2_sum };

// What fits into a block's shared memory.
constexpr int kMaxRouterExperts = 2048;
constexpr int kMaxRouterGroups = 256;
constexpr int kMaxRouterTopK = 64;

struct RouterArguments {
  std::int64_t num_tokens = 0, hidden_dim = 0;
  int num_experts = 0, top_k = 0;
  ElementType type = ElementType::bf16;
  RouterScore score = RouterScore::softmax;
  bool renormalize = false, select_by_logit = true;
  float scale = 1.0F;
  int num_groups = 1, topk_groups = 1;
  RouterGroupScore group_score = RouterGroupScore::max;
  const void* x = nullptr;                   // [num_tokens][hidden_dim] of `type`
  const float* gate = nullptr;               // [num_experts][hidden_dim]
  const float* selection_bias = nullptr;     // [num_experts] or null
  const std::int32_t* prescribed = nullptr;  // [num_tokens][top_k]
  std::int32_t* own_choice = nullptr;        // [num_tokens][top_k]
  float* weights = nullptr;                  // [num_tokens][top_k]
  float* scratch = nullptr;                  // router_scratch_entries()
};

// fp32 entries: logits in parts, so that few tokens still fill the device.
std::int64_t router_scratch_entries(std::int64_t num_tokens, std::int64_t hidden_dim,
                                    int num_experts);
// Enqueues. Ties go to the lower expert and the lower group; weights are the scores of
// `prescribed`. Parts of a dot product are added in a fixed order: the same input gives the same
// bits.
void router(cudaStream_t stream, const RouterArguments& arguments);

}  // namespace epsweep::cuda
