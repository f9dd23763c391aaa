// The host's element types as those of kernels.
#pragma once

#include "base/dtype.h"
#include "base/error.h"
#include "cuda/kernels/element_type.h"

namespace epsweep::cuda {

// Of rows, or of weights that are no e4m3 (cuda/kernels/quantise.h).
inline ElementType element_type_of(DType dtype) {
  EPS_EXPECT(!is_fp8(dtype), "kernels over rows know no fp8");
  return dtype == DType::bf16 ? ElementType::bf16 : ElementType::fp32;
}

}  // namespace epsweep::cuda
