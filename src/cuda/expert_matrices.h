// The weight matrices of a rank's experts on the device, one after the other, and their scales.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "device/buffer.h"
#include "device/grouped_gemm.h"

namespace epsweep::cuda {

class ExpertMatrices {
 public:
  explicit ExpertMatrices(const GemmShape& shape) : shape_(shape) {}

  // Allocates, and makes the weights on the device. With dtype fp8 all streams have one unit.
  void load(const WeightSource& weights);
  // [n][k] of one local expert.
  const void* of(int expert) const;
  // Its scales, as base/fp8_scales.h says; null where the dtype has none. With fp8 it is the same
  // one for all experts: the unit of their payload.
  const float* scales_of(int expert) const;
  // Without scales.
  std::int64_t bytes() const { return shape_.num_experts * matrix_bytes(); }

 private:
  std::int64_t matrix_bytes() const { return shape_.n * shape_.k * bytes_of(shape_.dtype); }

  void load_fp8(cudaStream_t stream, const WeightSource& weights);
  void load_fp8_block128(cudaStream_t stream, const WeightSource& weights);
  void* at(int expert);

  GemmShape shape_;
  Buffer data_, scales_;
};

// Overwrites device memory twice the size of its last-level cache, so that nothing read before is
// left there. Waits until it is done.
void flush_device_cache();

}  // namespace epsweep::cuda
