#include "cuda/check.h"

#include <fmt/format.h>

#include "base/error.h"

namespace epsweep::cuda {

void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  throw RunError(fmt::format("{}: {} (CUDA error {})", call, cudaGetErrorString(status),
                             static_cast<int>(status)));
}

}  // namespace epsweep::cuda
