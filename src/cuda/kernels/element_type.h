// The element types kernels are compiled for. C++17: base/dtype.h is the host's.
#pragma once

namespace epsweep::cuda {

enum class ElementType { bf16, fp32 };

}  // namespace epsweep::cuda
