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

// ncclAlltoAll exists in 2.28 and later.
inline constexpr int kAllToAllSince = 22800;
// Why ncclAlltoAll cannot be called; absent if it can.
std::optional<std::string> all_to_all_refusal(const NcclVersions& versions);

}  // namespace epsweep::cuda
