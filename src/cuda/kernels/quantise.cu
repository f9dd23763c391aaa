#include "cuda/kernels/e4m3.h"
#include "cuda/kernels/quantise.h"
#include "cuda/kernels/slot_rows.h"
#include "cuda/launch.h"

namespace epsweep::cuda {
namespace {

// Elements a thread turns at once: two words of bf16 in, one of e4m3 out, 16 bytes each.
constexpr int kPiece = 16;
constexpr int kPiecesOfBlock = static_cast<int>(kScaleBlock) / kPiece;

struct Piece {
  uint4 low, high;
};

__device__ Piece load_piece(const uint4* from) {
  return {from[0], from[1]};
}

// Multiplies by the reciprocal: both are powers of two, so nothing is rounded but to e4m3.
struct FixedScale {
  __device__ float operator()(float value) const { return value * (1.0F / kFp8InputScale); }
};
struct BlockScale {
  float scale;
  __device__ float operator()(float value) const { return value / scale; }
};

template <typename Scale>
__device__ unsigned quantised(unsigned a, unsigned b, const Scale& scale) {
  return e4m3x4(scale(first_of(a)), scale(second_of(a)), scale(first_of(b)), scale(second_of(b)));
}
template <typename Scale>
__device__ uint4 quantised(const Piece& piece, const Scale& scale) {
  return {quantised(piece.low.x, piece.low.y, scale), quantised(piece.low.z, piece.low.w, scale),
          quantised(piece.high.x, piece.high.y, scale),
          quantised(piece.high.z, piece.high.w, scale)};
}

__device__ float largest_of(unsigned word) {
  return fmaxf(fabsf(first_of(word)), fabsf(second_of(word)));
}
__device__ float largest_of(const uint4& words) {
  return fmaxf(fmaxf(largest_of(words.x), largest_of(words.y)),
               fmaxf(largest_of(words.z), largest_of(words.w)));
}

__global__ void quantise_kernel(ExpertSlots slots, std::int64_t pieces, const uint4* in,
                                uint4* out) {
  for_each_row(slots, [&](std::int64_t row, const Place& place) {
    const uint4* from = in + row * pieces * 2;
    uint4* to = out + place.row * pieces;
    for (std::int64_t p = threadIdx.x; p < pieces; p += blockDim.x) {
      to[p] = quantised(load_piece(from + 2 * p), FixedScale{});
    }
  });
}

// Eight threads of a warp hold a block of 128. Whole warps walk a row together, as they exchange
// what they found; threads behind its end take part with zeros.
__global__ void quantise_1x128_kernel(ExpertSlots slots, std::int64_t pieces, const uint4* in,
                                      uint4* out, float* scales) {
  const std::int64_t blocks = (pieces + kPiecesOfBlock - 1) / kPiecesOfBlock;
  for_each_row(slots, [&](std::int64_t row, const Place& place) {
    const std::int64_t begin = slots.slot[place.expert];
    const std::int64_t rows = slots.begin[place.expert + 1] - slots.begin[place.expert];
    const std::int64_t room = (rows + kScaledRows - 1) / kScaledRows * kScaledRows;
    const uint4* from = in + row * pieces * 2;
    for (std::int64_t base = 0; base < pieces; base += blockDim.x) {
      const std::int64_t p = base + threadIdx.x;
      Piece piece{};
      if (p < pieces) piece = load_piece(from + 2 * p);
      float largest = fmaxf(largest_of(piece.low), largest_of(piece.high));
      for (int step = kPiecesOfBlock / 2; step > 0; step /= 2) {
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffU, largest, step));
      }
      if (p >= pieces) continue;
      const BlockScale scale{block_scale(largest)};
      out[place.row * pieces + p] = quantised(piece, scale);
      if (p % kPiecesOfBlock == 0) {
        scales[begin * blocks + p / kPiecesOfBlock * room + (place.row - begin)] = scale.scale;
      }
    }
  });
}

__global__ void fill_scales_kernel(float value, std::int64_t count, float* scales) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kSlotThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kSlotThreads + threadIdx.x;
       i < count; i += step) {
    scales[i] = value;
  }
}

// The odd number of one of the eight bytes of a random word (base/payload_stream.h).
__device__ int odd_number(std::uint64_t word, int lane) {
  return 2 * static_cast<std::int8_t>(word >> (8 * lane)) + 1;
}

struct Odd {
  __device__ float operator()(int number) const { return static_cast<float>(number); }
};
struct OddInBlock {
  float unit, scale;
  __device__ float operator()(int number) const {
    return static_cast<float>(number) * unit / scale;
  }
};

template <typename Value>
__device__ unsigned quantised_odd(std::uint64_t word, int lane, const Value& value) {
  return e4m3x4(value(odd_number(word, lane)), value(odd_number(word, lane + 1)),
                value(odd_number(word, lane + 2)), value(odd_number(word, lane + 3)));
}
template <typename Value>
__device__ uint4 quantised_odd(std::uint64_t low, std::uint64_t high, const Value& value) {
  return {quantised_odd(low, 0, value), quantised_odd(low, 4, value), quantised_odd(high, 0, value),
          quantised_odd(high, 4, value)};
}

// A piece takes two random words.
__global__ void fill_kernel(RandomStream values, std::int64_t pieces, uint4* out) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kSlotThreads;
  for (std::int64_t p = static_cast<std::int64_t>(blockIdx.x) * kSlotThreads + threadIdx.x;
       p < pieces; p += step) {
    const auto word = static_cast<std::uint64_t>(2 * p);
    out[p] = quantised_odd(values.bits(word), values.bits(word + 1), Odd{});
  }
}

__device__ int largest_odd(std::uint64_t word) {
  int largest = 0;
#pragma unroll
  for (int lane = 0; lane < 8; ++lane) {
    const int number = odd_number(word, lane), size = number < 0 ? -number : number;
    largest = size > largest ? size : largest;
  }
  return largest;
}

struct LargestMemory {
  int of[kSlotThreads];
};

// Of all threads' numbers, known to all threads.
__device__ int block_largest(int own) {
  LargestMemory& memory = shared_memory<LargestMemory>();
  memory.of[threadIdx.x] = own;
  __syncthreads();
  for (int step = kSlotThreads / 2; step > 0; step /= 2) {
    if (static_cast<int>(threadIdx.x) < step &&
        memory.of[threadIdx.x + step] > memory.of[threadIdx.x]) {
      memory.of[threadIdx.x] = memory.of[threadIdx.x + step];
    }
    __syncthreads();
  }
  return memory.of[0];
}

// One thread block for one block of weights, which are drawn twice: to find the largest, and to
// store them.
__global__ void fill_128x128_kernel(RandomStream values, float unit, std::int64_t n,
                                    std::int64_t pieces, std::int64_t row_of_scales, uint4* out,
                                    float* scales) {
  const std::int64_t blocks = (pieces + kPiecesOfBlock - 1) / kPiecesOfBlock;
  const std::int64_t row_block = blockIdx.x / blocks, col_block = blockIdx.x % blocks;
  const auto for_each_piece = [&](const auto& visit) {
    for (int i = static_cast<int>(threadIdx.x); i < kScaleBlock * kPiecesOfBlock;
         i += kSlotThreads) {
      const std::int64_t row = row_block * kScaleBlock + i / kPiecesOfBlock;
      const std::int64_t col = col_block * kPiecesOfBlock + i % kPiecesOfBlock;
      if (row < n && col < pieces) visit(row * pieces + col);
    }
  };
  int own = 0;
  for_each_piece([&](std::int64_t p) {
    const auto word = static_cast<std::uint64_t>(2 * p);
    const int low = largest_odd(values.bits(word)), high = largest_odd(values.bits(word + 1));
    own = low > own ? low : own;
    own = high > own ? high : own;
  });
  const float scale = block_scale(static_cast<float>(block_largest(own)) * unit);
  for_each_piece([&](std::int64_t p) {
    const auto word = static_cast<std::uint64_t>(2 * p);
    out[p] = quantised_odd(values.bits(word), values.bits(word + 1), OddInBlock{unit, scale});
  });
  if (threadIdx.x != 0) return;
  scales[row_block * row_of_scales + col_block] = scale;
}

}  // namespace

void quantise_rows(cudaStream_t stream, const ExpertSlots& slots, std::int64_t k, const void* in,
                   void* out) {
  const std::int64_t pieces = k / kPiece;
  launch(stream, slot_grid(slots, pieces), quantise_kernel, slots, pieces,
         static_cast<const uint4*>(in), static_cast<uint4*>(out));
}

void quantise_rows_1x128(cudaStream_t stream, const ExpertSlots& slots, std::int64_t k,
                         const void* in, void* out, float* scales) {
  constexpr unsigned kWarp = 32;
  const std::int64_t pieces = k / kPiece;
  launch(stream, slot_grid(slots, pieces, kWarp), quantise_1x128_kernel, slots, pieces,
         static_cast<const uint4*>(in), static_cast<uint4*>(out), scales);
}

void fill_scales(cudaStream_t stream, float value, std::int64_t count, float* scales) {
  launch(stream, Grid{dim3(blocks_for(count, kSlotThreads)), dim3(kSlotThreads)},
         fill_scales_kernel, value, count, scales);
}

void fill_e4m3(cudaStream_t stream, RandomStream values, std::int64_t count, void* out) {
  const std::int64_t pieces = count / kPiece;
  launch(stream, Grid{dim3(blocks_for(pieces, kSlotThreads)), dim3(kSlotThreads)}, fill_kernel,
         values, pieces, static_cast<uint4*>(out));
}

void fill_e4m3_128x128(cudaStream_t stream, RandomStream values, float unit, std::int64_t n,
                       std::int64_t k, void* out, float* scales) {
  fill_scales(stream, 1.0F, weight_scales(n, k), scales);
  const auto blocks = static_cast<unsigned>(scale_blocks(n) * scale_blocks(k));
  launch(stream, Grid{dim3(blocks), dim3(kSlotThreads)}, fill_128x128_kernel, values, unit, n,
         k / kPiece, scale_row(k), static_cast<uint4*>(out), scales);
}

}  // namespace epsweep::cuda
