#include "cuda/nccl_version.h"

#include <cstdlib>

#include <fmt/format.h>
#include <nccl.h>

#include "cuda/nccl_comm.h"

namespace epsweep::cuda {

// Codes have had two digits for the minor version since 2.9.
std::string nccl_version_text(int code) {
  const int major = code < 10000 ? code / 1000 : code / 10000;
  const int minor = code < 10000 ? code / 100 % 10 : code / 100 % 100;
  return fmt::format("{}.{}.{}", major, minor, code % 100);
}

NcclVersions nccl_versions() {
  int loaded = 0;
  check(ncclGetVersion(&loaded), "ncclGetVersion");
  return {.built = NCCL_VERSION_CODE, .loaded = loaded};
}

std::optional<std::string> all_to_all_refusal(const NcclVersions& versions) {
  constexpr const char* kNeeds = "ncclAlltoAll came with NCCL 2.28";
  if (versions.built < kAllToAllSince) {
    return fmt::format("{}, this program was built with {}", kNeeds,
                       nccl_version_text(versions.built));
  }
  if (versions.loaded < kAllToAllSince) {
    return fmt::format("{}, the library that was loaded is {}", kNeeds,
                       nccl_version_text(versions.loaded));
  }
  return std::nullopt;
}

namespace {
bool ranks_share_a_gpu = false;
}  // namespace

void let_ranks_share_a_gpu() {
  ranks_share_a_gpu = true;
  setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 0);
  setenv("NCCL_MAX_CTAS", "4", 0);
}

std::optional<std::string> shared_gpu_refusal(const NcclVersions& versions) {
  if (!ranks_share_a_gpu || versions.loaded >= kSharedGpuSince) return std::nullopt;
  return fmt::format(
      "NCCL {} refuses ranks that share a GPU, 2.30 and later do not; transport mpi_staged serves "
      "them with any",
      nccl_version_text(versions.loaded));
}

}  // namespace epsweep::cuda
