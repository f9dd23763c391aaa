// What a backend does not compute in.
#pragma once

#include <optional>
#include <string>

#include "base/dtype.h"
#include "device/backend.h"

namespace epsweep {

// The reason why not; absent if the backend lists the dtype. Kernels may refuse it still.
std::optional<std::string> dtype_refusal(DType dtype, const BackendInfo& backend);

}  // namespace epsweep
