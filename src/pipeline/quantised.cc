#include "pipeline/quantised.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/float8.h"
#include "base/fp8_scales.h"

namespace epsweep {
namespace {

float as_e4m3(float value, float scale) {
  return float_of_e4m3(e4m3_of_float(value / scale)) * scale;
}

float largest_of(std::span<const float> values) {
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

template <typename Visit>
void for_each_block(std::size_t size, const Visit& visit) {
  constexpr auto kBlock = static_cast<std::size_t>(kScaleBlock);
  for (std::size_t begin = 0; begin < size; begin += kBlock) {
    visit(begin, std::min(kBlock, size - begin));
  }
}

// A payload value is one of 256 odd numbers times its unit: what becomes of each under a scale.
class QuantisedPayload {
 public:
  QuantisedPayload(float unit, float scale) : to_number_(1 / unit) {
    for (std::size_t i = 0; i < of_.size(); ++i) {
      of_[i] = as_e4m3(static_cast<float>(2 * static_cast<int>(i) - 255) * unit, scale);
    }
  }
  float of(float value) const {
    return of_[static_cast<std::size_t>((static_cast<int>(value * to_number_) + 255) / 2)];
  }

 private:
  float to_number_;
  std::array<float, 256> of_{};
};

}  // namespace

void quantise_inputs(DType dtype, std::span<float> row) {
  if (dtype == DType::fp8) {
    for (float& value : row) value = as_e4m3(value, kFp8InputScale);
  }
  if (dtype != DType::fp8_block128) return;
  for_each_block(row.size(), [&](std::size_t begin, std::size_t count) {
    const std::span<float> block = row.subspan(begin, count);
    const float scale = block_scale(largest_of(block));
    for (float& value : block) value = as_e4m3(value, scale);
  });
}

WeightRows::WeightRows(DType dtype, const PayloadMatrix& matrix, std::int64_t rows)
    : dtype_(dtype), matrix_(matrix), rows_(rows) {}

std::span<const float> WeightRows::next() {
  EPS_EXPECT(next_ < rows_, "a row behind the end of a matrix");
  const std::int64_t band = dtype_ == DType::fp8_block128 ? kScaleBlock : 1;
  if (next_ % band == 0) load_band();
  const auto cols = static_cast<std::size_t>(matrix_.cols());
  return std::span(band_).subspan(static_cast<std::size_t>(next_++ % band) * cols, cols);
}

void WeightRows::load_band() {
  const bool by_block = dtype_ == DType::fp8_block128;
  const auto cols = static_cast<std::size_t>(matrix_.cols());
  const auto count = static_cast<std::size_t>(by_block ? std::min(kScaleBlock, rows_ - next_) : 1);
  band_.resize(count * cols);
  const std::span<float> band(band_);
  matrix_.fill_row(next_, band.first(cols));
  for (std::size_t row = 1; row < count; ++row) {
    matrix_.fill_row(next_ + static_cast<std::int64_t>(row), band.subspan(row * cols, cols));
  }
  if (!is_fp8(dtype_)) return;
  const float unit = matrix_.stream().unit;
  if (!by_block) {
    for (float& value : band) value = as_e4m3(value, unit);
    return;
  }
  for_each_block(cols, [&](std::size_t begin, std::size_t width) {
    float largest = 0;
    for (std::size_t row = 0; row < count; ++row) {
      largest = std::max(largest, largest_of(band.subspan(row * cols + begin, width)));
    }
    const QuantisedPayload quantised(unit, block_scale(largest));
    for (std::size_t row = 0; row < count; ++row) {
      for (float& value : band.subspan(row * cols + begin, width)) value = quantised.of(value);
    }
  });
}

}  // namespace epsweep
