#include "pipeline/dtype_refusal.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"

namespace epsweep {

std::optional<std::string> dtype_refusal(DType dtype, const BackendInfo& backend) {
  if (std::ranges::find(backend.dtypes, dtype) != backend.dtypes.end()) return std::nullopt;
  std::vector<std::string> known;
  for (const DType one : backend.dtypes) known.emplace_back(to_string(one));
  return fmt::format("dtype {}: backend {} computes in {} only", to_string(dtype), backend.name,
                     join(known));
}

}  // namespace epsweep
