#include "cuda/expert_matrices.h"

#include <algorithm>

#include "cuda/cache_flush.h"
#include "cuda/check.h"
#include "cuda/cuda_memory.h"
#include "cuda/handles.h"

namespace epsweep::cuda {
namespace {

// Weights pass through page-locked memory of about this size.
constexpr std::int64_t kStageBytes = 64 << 20;

}  // namespace

void ExpertMatrices::load(const WeightSource& weights) {
  data_ = make_device_buffer(bytes());
  const std::int64_t row_bytes = shape_.k * bytes_of(shape_.dtype);
  const std::int64_t rows = std::clamp<std::int64_t>(kStageBytes / row_bytes, 1, shape_.n);
  Buffer stage = make_pinned_buffer(rows * row_bytes);
  const StreamHandle stream = make_stream();
  for (int expert = 0; expert < shape_.num_experts; ++expert) {
    for (std::int64_t begin = 0; begin < shape_.n; begin += rows) {
      const std::int64_t end = std::min(begin + rows, shape_.n);
      weights(expert, begin, end, stage.data());
      auto* to =
          static_cast<std::byte*>(data_.data()) + expert * matrix_bytes() + begin * row_bytes;
      EPS_CUDA(cudaMemcpyAsync(to, stage.data(),
                               static_cast<std::size_t>((end - begin) * row_bytes),
                               cudaMemcpyHostToDevice, stream.get()));
      EPS_CUDA(cudaStreamSynchronize(stream.get()));
    }
  }
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
