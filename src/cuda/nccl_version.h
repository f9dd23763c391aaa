// What an NCCL library can do, by its version.
#pragma once

#include <optional>
#include <string>

namespace epsweep::cuda {

// NCCL's version codes: 22809 for 2.28.9.
struct NcclVersions {
  int built = 0;   // of the header
  int loaded = 0;  // of the library
};
NcclVersions nccl_versions();
// "2.28.9"
std::string nccl_version_text(int code);

// ncclAlltoAll exists in 2.28 and later.
inline constexpr int kAllToAllSince = 22800;
// Why ncclAlltoAll cannot be called; absent if it can.
std::optional<std::string> all_to_all_refusal(const NcclVersions& versions);

// From 2.30 on NCCL can serve several ranks on one GPU where its environment says so
// (NCCL_MULTI_RANK_GPU_ENABLE, and few CTAs, since exhausting the multiprocessors hangs). Sets what
// is not set; before the first communicator.
void let_ranks_share_a_gpu();
inline constexpr int kSharedGpuSince = 23000;
// Why NCCL cannot be used by ranks that share a GPU; absent if it can, or if they do not
// (let_ranks_share_a_gpu() was not called).
std::optional<std::string> shared_gpu_refusal(const NcclVersions& versions);

}  // namespace epsweep::cuda
