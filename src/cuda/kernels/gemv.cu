#include "cuda/kernels/elements.h"
#include "cuda/kernels/gemv.h"
#include "cuda/launch.h"
#include "cuda/mma.h"

namespace epsweep::cuda {
namespace {

// A block owns kTileN outputs of one expert; its warps take turns at chunks of kChunkK inputs and
// add up their sums at the end. Weights are the wide operand of the tensor-core product (16 rows),
// tokens the narrow one (8).
constexpr int kTileN = 16, kChunkK = 32, kTokens = 8;
constexpr int kWarps = 8, kWarpSize = 32;

struct SumMemory {
  float sum[kWarps][kGemvRows][kTileN];
};

// Eight neighbouring elements as four registers of two. Which elements meet in a product does not
// matter as long as both operands agree, so a lane takes 16 bytes in a row.
__device__ uint4 load_eight(const __nv_bfloat16* at) {
  return *reinterpret_cast<const uint4*>(at);
}

template <int kTiles>
__device__ void multiply_chunk(const uint4& low, const uint4& high, const uint4 (&tokens)[kTiles],
                               float (&sums)[kTiles][4]) {
  const std::uint32_t first[4] = {low.x, high.x, low.y, high.y};
  const std::uint32_t second[4] = {low.z, high.z, low.w, high.w};
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
    const std::uint32_t first_tokens[2] = {tokens[tile].x, tokens[tile].y};
    const std::uint32_t second_tokens[2] = {tokens[tile].z, tokens[tile].w};
    mma_16x8x16(sums[tile], first, first_tokens);
    mma_16x8x16(sums[tile], second, second_tokens);
  }
}

// kTiles * 8 rows from `first_row` on, of which those below `end_row` exist.
template <int kTiles>
__device__ void multiply_rows(const __nv_bfloat16* x, const __nv_bfloat16* w, std::int64_t k,
                              int first_row, int end_row, SumMemory& memory) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int group = lane / 4, quad = lane % 4;
  float sums[kTiles][4];
#pragma unroll
  for (int i = 0; i < kTiles * 4; ++i) sums[i / 4][i % 4] = 0.0F;
#pragma unroll 4
  for (std::int64_t at = warp * kChunkK; at < k; at += kWarps * kChunkK) {
    const std::int64_t mine = at + quad * 8;
    const uint4 low = load_eight(w + group * k + mine);
    const uint4 high = load_eight(w + (group + 8) * k + mine);
    uint4 tokens[kTiles];
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      const int row = first_row + tile * kTokens + group;
      // Rows that do not exist repeat the last one; their sums are not stored.
      tokens[tile] =
          load_eight(x + static_cast<std::int64_t>(row < end_row ? row : end_row - 1) * k + mine);
    }
    multiply_chunk<kTiles>(low, high, tokens, sums);
  }
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      memory.sum[warp][tile * kTokens + 2 * quad + i % 2][group + (i < 2 ? 0 : 8)] = sums[tile][i];
    }
  }
}

__device__ void store_rows(const SumMemory& memory, int first_row, int num_rows, std::int64_t n,
                           __nv_bfloat16* y) {
  for (int i = static_cast<int>(threadIdx.x); i < num_rows * kTileN; i += kWarps * kWarpSize) {
    const int row = i / kTileN, col = i % kTileN;
    float sum = 0;
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) sum += memory.sum[warp][row][col];
    store(sum, y + (first_row + row) * n + col);
  }
}

__global__ void gemv_kernel(GemvRows rows, std::int64_t n, std::int64_t k, const __nv_bfloat16* x,
                            const __nv_bfloat16* w, __nv_bfloat16* y) {
  SumMemory& memory = shared_memory<SumMemory>();
  const int begin = rows.begin[blockIdx.y], end = rows.begin[blockIdx.y + 1];
  const std::int64_t first_col = static_cast<std::int64_t>(blockIdx.x) * kTileN;
  const __nv_bfloat16* matrix = w + (static_cast<std::int64_t>(blockIdx.y) * n + first_col) * k;
  for (int row = begin; row < end; row += kGemvRows) {
    const int count = end - row < kGemvRows ? end - row : kGemvRows;
    if (count > kTokens) {
      multiply_rows<2>(x, matrix, k, row, end, memory);
    } else {
      multiply_rows<1>(x, matrix, k, row, end, memory);
    }
    __syncthreads();
    store_rows(memory, row, count, n, y + first_col);
    __syncthreads();
  }
}

}  // namespace

void gemv(cudaStream_t stream, const GemvRows& rows, int num_experts, std::int64_t n,
          std::int64_t k, const void* x, const void* w, void* y) {
  const Grid grid{dim3(static_cast<unsigned>(n / kTileN), static_cast<unsigned>(num_experts)),
                  dim3(kWarps * kWarpSize)};
  launch(stream, grid, gemv_kernel, rows, n, k, static_cast<const __nv_bfloat16*>(x),
         static_cast<const __nv_bfloat16*>(w), static_cast<__nv_bfloat16*>(y));
}

}  // namespace epsweep::cuda
