#include "cuda/nccl_version.h"

#include <fmt/format.h>
#include <nccl.h>

#include "cuda/nccl_comm.h"

namespace epsweep::cuda {
namespace {

// Codes have had two digits for the minor version since 2.9.
std::string version_text(int code) {
  const int major = code < 10000 ? code / 1000 : code / 10000;
  const int minor = code < 10000 ? code / 100 % 10 : code / 100 % 100;
  return fmt::format("{}.{}.{}", major, minor, code % 100);
}

}  // namespace

NcclVersions nccl_versions() {
  int loaded = 0;
  check(ncclGetVersion(&loaded), "ncclGetVersion");
  return {.built = NCCL_VERSION_CODE, .loaded = loaded};
}

std::optional<std::string> all_to_all_refusal(const NcclVersions& versions) {
  constexpr const char* kNeeds = "ncclAlltoAll came with NCCL 2.28";
  if (versions.built < kAllToAllSince) {
    return fmt::format("{}, this program was built with {}", kNeeds, version_text(versions.built));
  }
  if (versions.loaded < kAllToAllSince) {
    return fmt::format("{}, the library that was loaded is {}", kNeeds,
                       version_text(versions.loaded));
  }
  return std::nullopt;
}

}  // namespace epsweep::cuda
