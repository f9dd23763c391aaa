#include "cuda/expert_matrices.h"

#include <algorithm>

#include "cuda/cache_flush.h"
#include "cuda/check.h"
#include "cuda/cuda_memory.h"
#include "cuda/element_type_of.h"
#include "cuda/handles.h"
#include "cuda/kernels/payload.h"

namespace epsweep::cuda {

void ExpertMatrices::load(const WeightSource& weights) {
  data_ = make_device_buffer(bytes());
  const StreamHandle stream = make_stream();
  for (int expert = 0; expert < shape_.num_experts; ++expert) {
    const PayloadStream values = weights(expert);
    fill_payload(stream.get(), values.words, 0, values.unit, shape_.n * shape_.k,
                 element_type_of(shape_.dtype),
                 static_cast<std::byte*>(data_.data()) + expert * matrix_bytes());
  }
  EPS_CUDA(cudaStreamSynchronize(stream.get()));
}

const void* ExpertMatrices::of(int expert) const {
  return static_cast<const std::byte*>(data_.data()) + expert * matrix_bytes();
}

void flush_device_cache() {
  static const StreamHandle stream = make_stream();
  enqueue_cache_flush(stream.get());
  EPS_CUDA(cudaStreamSynchronize(stream.get()));
}

}  // namespace epsweep::cuda
