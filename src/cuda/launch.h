// The one way kernels are started, and what kernels may use besides CUDA's own functions. tests/
// hostcuda has a twin of this file that runs the same kernels on the CPU. C++17: nvcc compiles it.
#pragma once

#include <cuda_runtime.h>

#include "cuda/check.h"

namespace epsweep::cuda {

struct Grid {
  dim3 blocks, threads;
};

// Enqueues. Arguments are converted to the kernel's parameters.
template <typename... Parameters, typename... Arguments>
void launch(cudaStream_t stream, Grid grid, void (*kernel)(Parameters...), Arguments... arguments) {
  if (grid.blocks.x == 0) return;
  cudaLaunchConfig_t config{};
  config.gridDim = grid.blocks;
  config.blockDim = grid.threads;
  config.stream = stream;
  EPS_CUDA(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...));
}

// The block's shared memory, uninitialized: one object for each type and kernel.
template <typename T>
__device__ T& shared_memory() {
  __shared__ T memory;
  return memory;
}

}  // namespace epsweep::cuda
