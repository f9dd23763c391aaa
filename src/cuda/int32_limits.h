// Counts for libraries and kernels that have 32 bits for them.
#pragma once

#include <cstdint>
#include <string_view>

namespace epsweep::cuda {

// `value` in 32 bits. Throws RunError naming `what` where it does not fit, instead of cutting it.
std::int32_t as_int32(std::int64_t value, std::string_view what);

}  // namespace epsweep::cuda
