// Logits of the router in parts of the hidden dimension. C++17.
#pragma once

#include "cuda/kernels/router.h"

namespace epsweep::cuda {

// Parts the hidden dimension is cut into.
int logit_parts(std::int64_t num_tokens, std::int64_t hidden_dim, int num_experts);
// scratch[part][token][expert] = sum over the part's h of x[token][h] * gate[expert][h].
void router_logits(cudaStream_t stream, const RouterArguments& arguments);

}  // namespace epsweep::cuda
