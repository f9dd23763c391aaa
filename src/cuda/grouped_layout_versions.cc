#include "cuda/grouped_layout_versions.h"

#include <limits>

#include <fmt/format.h>

namespace epsweep::cuda {
namespace {

constexpr int kOpenEnd = std::numeric_limits<int>::max();

// Compute capabilities that have such kernels at all, and the first release that has them. On 10.x
// and 11.0 cuBLAS 13.2 has them too, and ignores groups that are empty along the summed dimension.
struct Support {
  int first_capability, last_capability;
  int since;
};
constexpr Support kSupported[] = {{90, 90, 130400}, {100, 110, 130300}};

// Releases [first, end) that hang or compute wrong results.
struct Defect {
  int first_capability, last_capability;
  int first, end;
  const char* what;
};
constexpr Defect kDefects[] = {
    // NVIDIA 6456362: listed from CUDA 13.2 Update 1 (13.4.0) to 13.3 Update 1 (13.6.0), and no
    // more
    // in CUDA 13.4 (13.7.0). A timed loop cannot but use its workspace again.
    {90, 90, 130400, 130700, "grouped products that use a workspace again may hang"},
    // NVIDIA 6798616: since CUDA 13.4 (13.7.0); no release is known that mends it.
    {100, 110, 130700, kOpenEnd, "grouped products can give wrong results"},
};

std::string version_text(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}
std::string capability_text(int capability) {
  return fmt::format("{}.{}", capability / 10, capability % 10);
}

}  // namespace

std::optional<std::string> refuse_grouped_layouts(int cublas_version, int compute_capability) {
  const auto holds = [&](const auto& row) {
    return compute_capability >= row.first_capability && compute_capability <= row.last_capability;
  };
  const Support* support = nullptr;
  for (const Support& row : kSupported) {
    if (holds(row)) support = &row;
  }
  if (support == nullptr) {
    return fmt::format(
        "cuBLASLt has grouped layouts for compute capability 9.0 and 10.0 to 11.0, this device has "
        "{}",
        capability_text(compute_capability));
  }
  if (cublas_version < support->since) {
    return fmt::format("wants cuBLAS {} on compute capability {}, this is {}",
                       version_text(support->since), capability_text(compute_capability),
                       version_text(cublas_version));
  }
  for (const Defect& row : kDefects) {
    if (!holds(row) || cublas_version < row.first || cublas_version >= row.end) continue;
    return fmt::format("cuBLAS {} is denied on compute capability {}: {}{}",
                       version_text(cublas_version), capability_text(compute_capability), row.what,
                       row.end == kOpenEnd ? "" : fmt::format(" before {}", version_text(row.end)));
  }
  return std::nullopt;
}

}  // namespace epsweep::cuda
