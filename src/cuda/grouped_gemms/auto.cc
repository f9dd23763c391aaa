// The kernel that measures best on the rows at hand.
#include <algorithm>
#include <optional>

#include "cuda/auto_gemm.h"

namespace epsweep::cuda {
namespace {

constexpr auto kName = "auto";

// Every other kernel of the backend, by name.
std::vector<GroupedGemmEntry> candidates() {
  std::vector<GroupedGemmEntry> found;
  const GroupedGemmCatalog& catalog = GroupedGemmCatalog::instance();
  for (const std::string& name : catalog.names()) {
    const GroupedGemmEntry& entry = catalog.at(name);
    if (entry.backend == "cuda" && name != kName) found.push_back(entry);
  }
  return found;
}

// Only what nobody can.
std::optional<std::string> refuses(const GemmShape& shape) {
  std::string reasons;
  for (const GroupedGemmEntry& entry : candidates()) {
    const auto reason = entry.refuses(shape);
    if (!reason) return std::nullopt;
    reasons += (reasons.empty() ? "" : "; ") + entry.name + ": " + *reason;
  }
  return reasons;
}

// One candidate at a time has memory, and only the one that is taken keeps it.
std::int64_t scratch_bytes(const GemmShape& shape, std::span<const std::int64_t> rows_per_expert) {
  std::int64_t most = 0;
  for (const GroupedGemmEntry& entry : candidates()) {
    if (entry.scratch_bytes == nullptr || entry.refuses(shape)) continue;
    most = std::max(most, entry.scratch_bytes(shape, rows_per_expert));
  }
  return most;
}

const bool kAdded = GroupedGemmCatalog::instance().add(
    {.name = kName,
     .backend = "cuda",
     .summary = "the fastest of the others, measured on each layer's own rows before timing",
     .refuses = refuses,
     .make = [](const GemmShape& shape, int num_threads) -> std::unique_ptr<GroupedGemm> {
       return make_auto_gemm(shape, num_threads, candidates());
     },
     .scratch_bytes = scratch_bytes});

}  // namespace
}  // namespace epsweep::cuda
