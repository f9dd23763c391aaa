// oneDNN as a user of it would call it: its own layout, one call per expert and matrix.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace epsweep {

class PlainOneDnn {
 public:
  // y[rows][n] = x[rows][k] * w[expert][n][k]^T in bf16; `fill` writes an expert's [n][k] weights.
  PlainOneDnn(int experts, std::int64_t n, std::int64_t k,
              std::function<void(int expert, void* out)> fill);
  ~PlainOneDnn();

  // Packs for this row count (outside timing) and takes the weights out of the caches. `threads`:
  // of OpenMP, inside every product.
  void prepare(std::int64_t rows, int threads);
  // All experts, one after the other; x and y hold experts * rows rows.
  void run(const void* x, void* y);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace epsweep
