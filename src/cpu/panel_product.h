// A few rows times some panels of one expert's weights, in the ways this machine may know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "device/grouped_gemm.h"

namespace epsweep {

// y[rows][cols] = x[rows][k] * panels^T with fp32 accumulation, rounded once to y's type.
struct PanelRows {
  const void* x = nullptr;  // rows of k elements without gaps
  std::int64_t rows = 0, k = 0;
  const std::byte* panels = nullptr;  // see WeightPanels
  std::int64_t num_panels = 0, panel_bytes = 0;
  void* y = nullptr;      // its first row and column
  std::int64_t n = 0;     // elements from one row of y to the next
  std::int64_t cols = 0;  // of y that are written, at most num_panels * kPanelWidth
};

// One way. A row's result depends neither on the other rows nor on where the panels were cut.
struct PanelCode {
  std::string name;
  // Rows and panels that one call can take.
  std::int64_t most_rows = 0, most_panels = 0;
  // `scratch`: scratch_bytes() of any row count up to `rows`, 64-byte aligned. Returns the rows it
  // multiplied, at least `rows`.
  std::int64_t (*multiply)(const PanelRows& job, std::byte* scratch) = nullptr;
  std::int64_t (*scratch_bytes)(const GemmShape& shape, std::int64_t rows) = nullptr;
};

// Loops over vectors of the widest kind the CPU has (AVX-512, AVX2 or the compiler's baseline), for
// bf16 and fp32.
PanelCode vector_code(DType dtype);

// AMX tiles, bf16 only. Asks the kernel once for the permission to use them, for this process and
// its later threads; without it the first tile instruction would end the program.
struct TileCode {
  PanelCode code;
  std::string why_not;  // empty if the tiles may be used
};
const TileCode& tile_code();

}  // namespace epsweep
