// Twin of src/cuda/launch.h: the same kernels, run on the CPU by fibers. Found first because this
// folder comes first in the include path of the hostcuda targets.
#pragma once

#include <functional>

#include <cuda_runtime_api.h>
#include <math.h>
#include <vector_functions.h>
#include <vector_types.h>

#include "cuda/check.h"
#include "hostcuda/block.h"
#include "hostcuda/stream_queue.h"

namespace epsweep::cuda {

struct Grid {
  dim3 blocks, threads;
};

template <typename... Parameters, typename... Arguments>
void launch(cudaStream_t stream, Grid grid, void (*kernel)(Parameters...), Arguments... arguments) {
  if (grid.blocks.x == 0) return;
  std::function<void()> thread = [kernel, ... values = static_cast<Parameters>(arguments)] {
    kernel(values...);
  };
  hostcuda::enqueue(stream, [grid, thread = std::move(thread)] {
    hostcuda::run_grid(grid.blocks, grid.threads, thread);
    return hostcuda::Progress::done;
  });
}

// Of the running block; every byte 0xff at its start, with a red zone behind it.
template <typename T>
T& shared_memory() {
  static const char key = 0;
  return *static_cast<T*>(hostcuda::shared_memory(&key, sizeof(T)));
}

}  // namespace epsweep::cuda
