#include "cuda/quantised_inputs.h"

#include "base/error.h"
#include "base/fp8_scales.h"
#include "cuda/check.h"
#include "cuda/cuda_memory.h"
#include "cuda/handles.h"
#include "cuda/kernels/quantise.h"

namespace epsweep::cuda {
namespace {

// One fp32, aligned as the library likes.
constexpr std::int64_t kOneScaleBytes = 16;

}  // namespace

std::int64_t product_rows(DType dtype, std::int64_t rows) {
  return dtype == DType::fp8_block128 ? in_tiles(rows, kScaledRows) : rows;
}

void QuantisedInputs::reserve(std::int64_t slot_rows) {
  grow_buffer(rows_, slot_rows * shape_.k);
  if (by_block()) {
    grow_buffer(scales_, slot_rows * scale_blocks(shape_.k) * std::int64_t{sizeof(float)});
    return;
  }
  if (scales_.bytes() > 0) return;
  scales_ = make_device_buffer(kOneScaleBytes);
  const StreamHandle stream = make_stream();
  fill_scales(stream.get(), kFp8InputScale, 1, static_cast<float*>(scales_.data()));
  EPS_CUDA(cudaStreamSynchronize(stream.get()));
}

std::int64_t QuantisedInputs::bytes_for(const GemmShape& shape, std::int64_t slot_rows) {
  const std::int64_t scales = shape.dtype == DType::fp8_block128
                                  ? slot_rows * scale_blocks(shape.k) * std::int64_t{sizeof(float)}
                                  : kOneScaleBytes;
  return slot_rows * shape.k + scales;
}

void QuantisedInputs::quantise(cudaStream_t stream, const SlotPlan& slots, const void* x) {
  EPS_EXPECT(rows_.bytes() >= slots.stored_rows() * shape_.k,
             "a matrix product of rows that were not prepared");
  for (const ExpertSlots& part : slots.parts()) {
    if (by_block()) {
      quantise_rows_1x128(stream, part, shape_.k, x, rows_.data(),
                          static_cast<float*>(scales_.data()));
    } else {
      quantise_rows(stream, part, shape_.k, x, rows_.data());
    }
  }
}

const void* QuantisedInputs::rows_at(std::int64_t slot) const {
  return static_cast<const std::byte*>(rows_.data()) + slot * shape_.k;
}

const float* QuantisedInputs::scales_at(std::int64_t slot) const {
  const auto* scales = static_cast<const float*>(scales_.data());
  return by_block() ? scales + slot * scale_blocks(shape_.k) : scales;
}

}  // namespace epsweep::cuda
