// The host's element types as those of kernels.
#pragma once

#include "base/dtype.h"
#include "cuda/kernels/element_type.h"

namespace epsweep::cuda {

inline ElementType element_type_of(DType dtype) {
  return dtype == DType::bf16 ? ElementType::bf16 : ElementType::fp32;
}

}  // namespace epsweep::cuda
