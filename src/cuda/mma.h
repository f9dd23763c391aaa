// The tensor-core product of a warp. tests/hostcuda has a twin of this file. C++17.
#pragma once

#include <cstdint>

namespace epsweep::cuda {

// d[16][8] += a[16][16] * b[8][16]^T for a warp: bf16 inputs, fp32 sums. Lane l has, with g = l / 4
// and q = l % 4, two elements a register (the lower index in the lower half):
//   a: (row g, columns 2q, 2q+1), (row g+8, the same), (row g, columns 2q+8, +9), (row g+8, those)
//   b: (row g, columns 2q, 2q+1), (row g, columns 2q+8, +9)
//   d: (row g, columns 2q, 2q+1), (row g+8, columns 2q, 2q+1)
// PTX ISA, "Matrix fragments for mma.m16n8k16". Needs sm_80.
__device__ inline void mma_16x8x16(float (&d)[4], const std::uint32_t (&a)[4],
                                   const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

}  // namespace epsweep::cuda
