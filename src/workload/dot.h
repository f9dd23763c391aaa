// Dot products for checks and for choices that must not depend on rounding.
#pragma once

#include <cstddef>

namespace epsweep {

// fp32 inside blocks of 256 terms, double across them: rounding stays below 1e-6 of the result's
// scale. Exact where both rows are payload values: 256 products of two odd numbers up to 255 stay
// below 2^24 units.
double dot(const float* a, const float* b, std::size_t size);

}  // namespace epsweep
