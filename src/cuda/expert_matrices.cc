#include "cuda/expert_matrices.h"

#include <algorithm>

#include "base/error.h"
#include "base/fp8_scales.h"
#include "cuda/cache_flush.h"
#include "cuda/check.h"
#include "cuda/cuda_memory.h"
#include "cuda/element_type_of.h"
#include "cuda/handles.h"
#include "cuda/kernels/payload.h"
#include "cuda/kernels/quantise.h"

namespace epsweep::cuda {

void ExpertMatrices::load(const WeightSource& weights) {
  data_ = make_device_buffer(bytes());
  const StreamHandle stream = make_stream();
  if (shape_.dtype == DType::fp8) {
    load_fp8(stream.get(), weights);
  } else if (shape_.dtype == DType::fp8_block128) {
    load_fp8_block128(stream.get(), weights);
  } else {
    for (int expert = 0; expert < shape_.num_experts; ++expert) {
      const PayloadStream values = weights(expert);
      fill_payload(stream.get(), values.words, 0, values.unit, shape_.n * shape_.k,
                   element_type_of(shape_.dtype), at(expert));
    }
  }
  EPS_CUDA(cudaStreamSynchronize(stream.get()));
}

void ExpertMatrices::load_fp8(cudaStream_t stream, const WeightSource& weights) {
  constexpr std::int64_t kOneScaleBytes = 16;  // aligned as the library likes
  scales_ = make_device_buffer(kOneScaleBytes);
  const float unit = shape_.num_experts > 0 ? weights(0).unit : 1.0F;
  fill_scales(stream, unit, 1, static_cast<float*>(scales_.data()));
  for (int expert = 0; expert < shape_.num_experts; ++expert) {
    const PayloadStream values = weights(expert);
    EPS_EXPECT(values.unit == unit, "experts of one matrix have weights of different units");
    fill_e4m3(stream, values.words, shape_.n * shape_.k, at(expert));
  }
}

void ExpertMatrices::load_fp8_block128(cudaStream_t stream, const WeightSource& weights) {
  const std::int64_t count = weight_scales(shape_.n, shape_.k);
  scales_ = make_device_buffer(shape_.num_experts * count * std::int64_t{sizeof(float)});
  for (int expert = 0; expert < shape_.num_experts; ++expert) {
    const PayloadStream values = weights(expert);
    fill_e4m3_128x128(stream, values.words, values.unit, shape_.n, shape_.k, at(expert),
                      static_cast<float*>(scales_.data()) + expert * count);
  }
}

void* ExpertMatrices::at(int expert) {
  return static_cast<std::byte*>(data_.data()) + expert * matrix_bytes();
}

const float* ExpertMatrices::scales_of(int expert) const {
  const auto* scales = static_cast<const float*>(scales_.data());
  if (shape_.dtype != DType::fp8_block128) return scales;
  return scales + expert * weight_scales(shape_.n, shape_.k);
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
