// The two matrix products of the expert FFN over all local experts.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/payload_stream.h"
#include "base/registry.h"
#include "device/buffer.h"
#include "device/lane.h"

namespace epsweep {

// y[rows][n] = x[rows][k] * w[n][k]^T for every expert; all row-major, w of `dtype`, x and y of its
// row_dtype(), accumulation in fp32. With fp8 the product turns x into e4m3 itself.
struct GemmShape {
  int num_experts = 0;  // local ones
  std::int64_t n = 0, k = 0;
  DType dtype = DType::bf16;
};

// Element [row][col] of an expert's weight matrix is value row * k + col of its stream.
using WeightSource = std::function<PayloadStream(int expert)>;

// What a kernel that picks among others knew when it picked.
struct GemmChoice {
  struct Candidate {
    std::string name;
    std::optional<double> us;  // median of its repetitions; absent where it was left out
    std::int64_t kernel_calls = 0;
    std::string left_out;  // why; empty if it was measured
  };
  std::string chosen;
  std::vector<Candidate> candidates;
};

// What one run() did, for the record. A library's own tiles inside its calls are not seen.
struct GemmWork {
  // Kernel launches, library calls, and copies of rows or pointers; not waits for events.
  std::int64_t kernel_calls = 0;
  std::int64_t computed_rows = 0;  // rows multiplied: routed rows plus the kernel's padding
  std::int64_t stored_rows = 0;    // rows of memory the products read from, padding included
  // What it uses besides weights, x and y; a library's share of it (cuBLAS: 32 MiB for each stream)
  // is one piece of memory for all layers.
  std::int64_t workspace_bytes = 0;
  std::shared_ptr<const GemmChoice> choice;  // null for a kernel that does not pick
};

// One object per (layer, matrix): it owns its weights in whatever layout it likes.
class GroupedGemm {
 public:
  virtual ~GroupedGemm() = default;
  // Expensive: allocates and packs. Called once.
  virtual void prepare(const WeightSource& weights) = 0;
  // Makes whatever run() needs for these row counts (code, scratch); outside timing.
  virtual void warm(std::span<const std::int64_t> rows_per_expert) = 0;
  // Enqueues. Rows of x and y lie in expert order without gaps; experts without rows are skipped.
  // Allocates nothing after warm() with the same counts.
  virtual GemmWork run(Lane& lane, const Buffer& x, Buffer& y,
                       std::span<const std::int64_t> rows_per_expert) = 0;
  // Evicts the weights from the caches.
  virtual void flush_weights() = 0;
  // Without scales.
  virtual std::int64_t weight_bytes() const = 0;
};

struct GroupedGemmEntry {
  std::string name;
  std::string backend;
  std::string summary;
  // The reason why not; absent if the kernel can.
  std::optional<std::string> (*refuses)(const GemmShape& shape) = nullptr;
  std::unique_ptr<GroupedGemm> (*make)(const GemmShape& shape, int num_threads) = nullptr;
  // What warm() allocates for itself that grows with the rows, so that a point too large for the
  // device is known before; null for a kernel without such memory.
  std::int64_t (*scratch_bytes)(const GemmShape& shape,
                                std::span<const std::int64_t> rows_per_expert) = nullptr;
};

using GroupedGemmCatalog = Registry<GroupedGemmEntry>;

}  // namespace epsweep
