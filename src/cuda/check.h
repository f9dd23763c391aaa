// CUDA's return codes as errors with the call's own words.
#pragma once

#include <cuda_runtime_api.h>

namespace epsweep::cuda {

// Throws RunError naming the call and what the runtime says; `call` is the text of the expression.
void check(cudaError_t status, const char* call);

}  // namespace epsweep::cuda

#define EPS_CUDA(call) ::epsweep::cuda::check((call), #call)
