#include "cuda/kernels/elements.h"
#include "cuda/kernels/router_logits.h"
#include "cuda/launch.h"

namespace epsweep::cuda {
namespace {

// A block computes kTile x kTile logits, a thread kPerThread x kPerThread of them, kDepth hidden
// columns at a time.
constexpr int kTile = 64, kPerThread = 4, kDepth = 16;
constexpr int kSide = kTile / kPerThread;
// Blocks that keep a large GPU busy, and the least hidden columns a part is worth.
constexpr std::int64_t kWantedBlocks = 256, kLeastDepth = 256;
constexpr int kMostParts = 32;

struct TileMemory {
  // One column more than needed keeps threads of a warp on different banks.
  float x[kDepth][kTile + 1];
  float gate[kDepth][kTile + 1];
};

std::int64_t tiles(std::int64_t count) {
  return (count + kTile - 1) / kTile;
}

template <typename Element>
__device__ void load_tile(const Element* from, std::int64_t rows, std::int64_t first_row,
                          std::int64_t cols, std::int64_t first_col, std::int64_t end_col,
                          float (&to)[kDepth][kTile + 1]) {
  for (int i = static_cast<int>(threadIdx.x); i < kTile * kDepth; i += kSide * kSide) {
    const int row = i / kDepth, col = i % kDepth;
    const bool inside = first_row + row < rows && first_col + col < end_col;
    to[col][row] = inside ? load(from + (first_row + row) * cols + first_col + col) : 0.0F;
  }
}

template <typename Element>
__global__ void logits_kernel(RouterArguments arguments, std::int64_t depth_of_part) {
  TileMemory& memory = shared_memory<TileMemory>();
  const int mine_x = static_cast<int>(threadIdx.x) / kSide,
            mine_e = static_cast<int>(threadIdx.x) % kSide;
  const std::int64_t token = static_cast<std::int64_t>(blockIdx.x) * kTile;
  const std::int64_t expert = static_cast<std::int64_t>(blockIdx.y) * kTile;
  const std::int64_t begin = blockIdx.z * depth_of_part;
  const std::int64_t end =
      begin + depth_of_part < arguments.hidden_dim ? begin + depth_of_part : arguments.hidden_dim;
  float sums[kPerThread][kPerThread];
#pragma unroll
  for (int i = 0; i < kPerThread * kPerThread; ++i) sums[i / kPerThread][i % kPerThread] = 0.0F;
  for (std::int64_t h = begin; h < end; h += kDepth) {
    load_tile(static_cast<const Element*>(arguments.x), arguments.num_tokens, token,
              arguments.hidden_dim, h, end, memory.x);
    load_tile(arguments.gate, arguments.num_experts, expert, arguments.hidden_dim, h, end,
              memory.gate);
    __syncthreads();
#pragma unroll
    for (int d = 0; d < kDepth; ++d) {
      float a[kPerThread], b[kPerThread];
#pragma unroll
      for (int i = 0; i < kPerThread; ++i) {
        a[i] = memory.x[d][mine_x + i * kSide];
        b[i] = memory.gate[d][mine_e + i * kSide];
      }
#pragma unroll
      for (int i = 0; i < kPerThread; ++i) {
#pragma unroll
        for (int j = 0; j < kPerThread; ++j) sums[i][j] = fmaf(a[i], b[j], sums[i][j]);
      }
    }
    __syncthreads();
  }
  float* out = arguments.scratch + blockIdx.z * arguments.num_tokens * arguments.num_experts;
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
#pragma unroll
    for (int j = 0; j < kPerThread; ++j) {
      const std::int64_t t = token + mine_x + i * kSide, e = expert + mine_e + j * kSide;
      if (t < arguments.num_tokens && e < arguments.num_experts) {
        out[t * arguments.num_experts + e] = sums[i][j];
      }
    }
  }
}

}  // namespace

int logit_parts(std::int64_t num_tokens, std::int64_t hidden_dim, int num_experts) {
  const std::int64_t blocks = tiles(num_tokens) * tiles(num_experts);
  if (blocks == 0) return 1;
  std::int64_t parts = (kWantedBlocks + blocks - 1) / blocks;
  const std::int64_t most = hidden_dim / kLeastDepth;
  parts = parts < most ? parts : most;
  parts = parts < kMostParts ? parts : kMostParts;
  return parts < 1 ? 1 : static_cast<int>(parts);
}

void router_logits(cudaStream_t stream, const RouterArguments& arguments) {
  const int parts = logit_parts(arguments.num_tokens, arguments.hidden_dim, arguments.num_experts);
  const std::int64_t depth = (arguments.hidden_dim + parts - 1) / parts;
  const Grid grid{
      dim3(static_cast<unsigned>(tiles(arguments.num_tokens)),
           static_cast<unsigned>(tiles(arguments.num_experts)), static_cast<unsigned>(parts)),
      dim3(kSide * kSide)};
  if (arguments.type == ElementType::bf16) {
    launch(stream, grid, logits_kernel<__nv_bfloat16>, arguments, depth);
  } else {
    launch(stream, grid, logits_kernel<float>, arguments, depth);
  }
}

}  // namespace epsweep::cuda
