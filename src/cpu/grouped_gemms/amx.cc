// Our own kernel: few rows per expert at the speed of memory, many near that of the tiles.
#include <memory>

#include "cpu/grouped_gemms/panel_gemm.h"

namespace epsweep {
namespace {

std::optional<std::string> refuses(const GemmShape& shape) {
  if (shape.n < 1 || shape.k < 1) return "n and k must be at least 1";
  return std::nullopt;
}

std::unique_ptr<GroupedGemm> make(const GemmShape& shape, int num_threads) {
  return make_panel_gemm(shape, num_threads, tile_code());
}

const bool registered = GroupedGemmCatalog::instance().add(
    {.name = "amx",
     .backend = "cpu",
     .summary = "own kernel, all experts behind one barrier: AMX tiles for bf16 where the CPU has "
                "them, vectors of its widest kind elsewhere",
     .refuses = refuses,
     .make = make});

}  // namespace
}  // namespace epsweep
