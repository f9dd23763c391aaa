#include "cuda/int32_limits.h"

#include <limits>

#include <fmt/format.h>

#include "base/error.h"

namespace epsweep::cuda {

std::int32_t as_int32(std::int64_t value, std::string_view what) {
  using Limits = std::numeric_limits<std::int32_t>;
  if (value >= Limits::min() && value <= Limits::max()) return static_cast<std::int32_t>(value);
  throw RunError(fmt::format("{}: {} does not fit 32 bits", what, value));
}

}  // namespace epsweep::cuda
