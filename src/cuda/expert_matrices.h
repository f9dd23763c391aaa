// The weight matrices of a rank's experts on the device, one after the other.
#pragma once

#include <cstdint>

#include "device/buffer.h"
#include "device/grouped_gemm.h"

namespace epsweep::cuda {

class ExpertMatrices {
 public:
  explicit ExpertMatrices(const GemmShape& shape) : shape_(shape) {}

  // Allocates, and makes the weights on the device.
  void load(const WeightSource& weights);
  // [n][k] of one local expert.
  const void* of(int expert) const;
  std::int64_t bytes() const { return shape_.num_experts * matrix_bytes(); }

 private:
  std::int64_t matrix_bytes() const { return shape_.n * shape_.k * bytes_of(shape_.dtype); }

  GemmShape shape_;
  Buffer data_;
};

// Overwrites device memory twice the size of its last-level cache, so that nothing read before is
// left there. Waits until it is done.
void flush_device_cache();

}  // namespace epsweep::cuda
