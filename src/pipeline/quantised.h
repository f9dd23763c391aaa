// What products of fp8 multiply: values as e4m3 and scales hold them, for the oracle.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/dtype.h"
#include "workload/payload.h"

namespace epsweep {

// Replaces a row of inputs by what its e4m3 numbers times their scales are; other dtypes than fp8
// keep it.
void quantise_inputs(DType dtype, std::span<float> row);

// Rows of a weight matrix with `rows` rows, in ascending order.
class WeightRows {
 public:
  WeightRows(DType dtype, const PayloadMatrix& matrix, std::int64_t rows);
  // [cols] of the next row; valid until the next call.
  std::span<const float> next();

 private:
  void load_band();

  DType dtype_;
  PayloadMatrix matrix_;
  std::int64_t rows_, next_ = 0;
  // The rows that share scales, or one: [band][cols].
  std::vector<float> band_;
};

}  // namespace epsweep
