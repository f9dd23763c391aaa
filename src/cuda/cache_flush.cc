#include "cuda/cache_flush.h"

#include <algorithm>

#include "cuda/check.h"
#include "cuda/cuda_memory.h"

namespace epsweep::cuda {

void enqueue_cache_flush(cudaStream_t stream) {
  static Buffer room = [] {
    int device = 0, cache_bytes = 0;
    EPS_CUDA(cudaGetDevice(&device));
    EPS_CUDA(cudaDeviceGetAttribute(&cache_bytes, cudaDevAttrL2CacheSize, device));
    return make_device_buffer(std::max<std::int64_t>(2LL * cache_bytes, 1 << 20));
  }();
  EPS_CUDA(cudaMemsetAsync(room.data(), 0, static_cast<std::size_t>(room.bytes()), stream));
}

}  // namespace epsweep::cuda
