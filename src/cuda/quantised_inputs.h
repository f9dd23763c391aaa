// The inputs of a product in e4m3, made right before it: part of what the product takes.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "cuda/slot_plan.h"
#include "device/buffer.h"
#include "device/grouped_gemm.h"

namespace epsweep::cuda {

// Rows that the product of an expert with `rows` rows has at least: cuBLASLt wants multiples of 4
// where inputs have scales of 1x128.
std::int64_t product_rows(DType dtype, std::int64_t rows);

// Of shapes with fp8 only.
class QuantisedInputs {
 public:
  explicit QuantisedInputs(const GemmShape& shape) : shape_(shape) {}

  // Allocates room for rows in those slots.
  void reserve(std::int64_t slot_rows);
  // Enqueues launches().
  void quantise(cudaStream_t stream, const SlotPlan& slots, const void* x);
  static std::int64_t launches(const SlotPlan& slots) {
    return static_cast<std::int64_t>(slots.parts().size());
  }

  // From a slot on; the scales of the expert that begins there.
  const void* rows_at(std::int64_t slot) const;
  const float* scales_at(std::int64_t slot) const;
  std::int64_t bytes() const { return rows_.bytes() + scales_.bytes(); }
  // What reserve() of that many rows makes it.
  static std::int64_t bytes_for(const GemmShape& shape, std::int64_t slot_rows);

 private:
  bool by_block() const { return shape_.dtype == DType::fp8_block128; }

  GemmShape shape_;
  Buffer rows_, scales_;
};

}  // namespace epsweep::cuda
