// Token rows and weights made on the device from the host's counter-based functions. C++17.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "base/random.h"
#include "cuda/kernels/element_type.h"

namespace epsweep::cuda {

// out[i] = value begin + i of the payload stream of these words and that unit, bit-equal to
// base/payload_stream.h. Enqueues.
void fill_payload(cudaStream_t stream, RandomStream values, std::int64_t begin, float unit,
                  std::int64_t count, ElementType type, void* out);

}  // namespace epsweep::cuda
