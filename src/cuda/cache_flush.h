// Cold device caches for a measurement; flush_device_cache() waits, this does not.
#pragma once

#include <cuda_runtime_api.h>

namespace epsweep::cuda {

// Overwrites device memory twice the size of the last-level cache. Enqueues.
void enqueue_cache_flush(cudaStream_t stream);

}  // namespace epsweep::cuda
