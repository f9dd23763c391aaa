// The router's matrix product.
#pragma once

#include <cstdint>

namespace epsweep {

// x [tokens][hidden] and gate [experts][hidden], without gaps.
struct GateProduct {
  const float* x = nullptr;
  const float* gate = nullptr;
  std::int64_t tokens = 0, experts = 0, hidden = 0;

  // Floats of scratch.
  std::int64_t num_sums() const { return tokens * 4 * 16; }
};

// logits[t * experts + e] = sum over h of x[t][h] * gate[e][h], in fp32. Rows of x are read once
// for every four experts and should fit a level-2 cache; sums: [num_sums()].
void gate_product(const GateProduct& product, float* sums, float* logits);

}  // namespace epsweep
