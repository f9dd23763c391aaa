// What a program without a grouped kernel does: one product after the other.
#include <memory>

#include "cpu/grouped_gemms/packed_grouped_gemm.h"

namespace epsweep {
namespace {

std::unique_ptr<GroupedGemm> make(const GemmShape& shape, int num_threads) {
  return std::make_unique<PackedGroupedGemm>(shape, num_threads, ExpertOrder::one_by_one);
}

const bool registered = GroupedGemmCatalog::instance().add(
    {.name = "loop",
     .backend = "cpu",
     .summary = "one oneDNN product per expert, strictly in turn, split over the threads",
     .refuses = PackedGemm::refuses,
     .make = make});

}  // namespace
}  // namespace epsweep
