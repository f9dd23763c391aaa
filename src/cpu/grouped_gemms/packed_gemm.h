// Products of single experts from weights packed once. By oneDNN (onednn.cc).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cpu/thread_pool.h"
#include "cpu/weight_panels.h"
#include "device/grouped_gemm.h"

namespace epsweep {

// Columns are packed in panels of so many, a multiple of all of oneDNN's blocks.
inline constexpr std::int64_t kPanelCols = 64;

class PackedGemm {
 public:
  PackedGemm(const GemmShape& shape, int num_workers);
  ~PackedGemm();
  PackedGemm(const PackedGemm&) = delete;
  PackedGemm& operator=(const PackedGemm&) = delete;

  // Whether oneDNN multiplies from WeightPanels on this CPU; elsewhere from a layout of its own.
  bool takes_panels() const;
  // The packed copy serves every row count; one panel per thread is unpacked at a time.
  void pack(const WeightSource& weights, ThreadPool& pool);
  // Instead of pack(), where it takes them: weights of the same shape, loaded.
  void share(std::shared_ptr<const WeightPanels> weights);
  // Whether one call can cover so many columns (from the first of a panel on): a panel, the
  // narrower last one, or several where oneDNN lays out their sum like the panels behind each
  // other.
  bool can_call(std::int64_t cols);
  // Compiles (0.5 to 5 ms) and allocates what multiply() needs, unless it is there. cols > 0.
  void warm(std::int64_t rows, std::int64_t cols);
  // y[rows][cols] = x[rows][k] * w[expert][first_col, first_col + cols)^T, y dense, in one oneDNN
  // call on the calling thread. Needs warm(rows, cols). Workers may run at the same time.
  void multiply(int worker, int expert, std::int64_t first_col, std::int64_t cols,
                std::int64_t rows, const void* x, void* y);
  void flush();
  std::int64_t weight_bytes() const;
  // Of all workers.
  std::int64_t scratch_bytes() const;

  static std::optional<std::string> refuses(const GemmShape& shape);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace epsweep
