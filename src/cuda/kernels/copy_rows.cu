#include "cuda/kernels/elements.h"
#include "cuda/kernels/rows.h"
#include "cuda/launch.h"

namespace epsweep::cuda {
namespace {

constexpr int kThreads = 256;

// A row of words is copied by threadIdx.x of its block, several rows of a block by threadIdx.y.
template <typename Word>
__device__ void copy_row(const Word* __restrict__ from, std::int64_t words, Word* __restrict__ to) {
#pragma unroll 4
  for (std::int64_t w = threadIdx.x; w < words; w += blockDim.x) to[w] = from[w];
}

template <typename Word>
__global__ void scatter_kernel(const Word* in, std::int64_t stride, int repeat,
                               const std::int32_t* position, std::int64_t rows, std::int64_t words,
                               Word* out) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.y;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
       row < rows; row += step) {
    copy_row(in + row / repeat * stride, words, out + position[row] * words);
  }
}

template <typename Word>
__global__ void gather_kernel(const Word* in, std::int64_t stride, const std::int32_t* source,
                              std::int64_t rows, std::int64_t words, Word* out) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.y;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
       row < rows; row += step) {
    copy_row(in + source[row] * stride, words, out + row * words);
  }
}

// Strides in words.
template <typename Word>
__global__ void move_kernel(const Word* in, std::int64_t in_stride, const std::int32_t* source,
                            const std::int32_t* position, std::int64_t out_stride,
                            std::int64_t rows, std::int64_t words, Word* out) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.y;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
       row < rows; row += step) {
    const std::int64_t to = position == nullptr ? row : position[row];
    copy_row(in + source[row] * in_stride, words, out + to * out_stride);
  }
}

// Wide enough for a row, but not wider: short rows share a block.
Grid grid_for(std::int64_t rows, std::int64_t words) {
  unsigned lanes = kThreads;
  while (lanes > 1 && lanes / 2 >= words) lanes /= 2;
  const unsigned per_block = kThreads / lanes;
  return {dim3(blocks_for(rows, per_block)), dim3(lanes, per_block)};
}

bool fits(std::uintptr_t bits, std::uintptr_t bytes) {
  return bits % bytes == 0;
}

// Bits of everything that must be a multiple of the access width.
std::uintptr_t bits_of(const void* a, const void* b, std::int64_t bytes, std::int64_t stride) {
  return reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b) |
         static_cast<std::uintptr_t>(bytes) | static_cast<std::uintptr_t>(stride);
}

template <typename Word>
void scatter(cudaStream_t stream, const void* in, std::int64_t stride_bytes, int repeat,
             const std::int32_t* position, std::int64_t rows, std::int64_t row_bytes, void* out) {
  const auto width = static_cast<std::int64_t>(sizeof(Word));
  launch(stream, grid_for(rows, row_bytes / width), scatter_kernel<Word>,
         static_cast<const Word*>(in), stride_bytes / width, repeat, position, rows,
         row_bytes / width, static_cast<Word*>(out));
}

template <typename Word>
void gather(cudaStream_t stream, const void* in, std::int64_t stride_bytes,
            const std::int32_t* source, std::int64_t rows, std::int64_t row_bytes, void* out) {
  const auto width = static_cast<std::int64_t>(sizeof(Word));
  launch(stream, grid_for(rows, row_bytes / width), gather_kernel<Word>,
         static_cast<const Word*>(in), stride_bytes / width, source, rows, row_bytes / width,
         static_cast<Word*>(out));
}

template <typename Word>
void move(cudaStream_t stream, const MoveArguments& a) {
  const auto width = static_cast<std::int64_t>(sizeof(Word));
  launch(stream, grid_for(a.rows, a.row_bytes / width), move_kernel<Word>,
         static_cast<const Word*>(a.in), a.in_stride_bytes / width, a.source, a.position,
         a.out_stride_bytes / width, a.rows, a.row_bytes / width, static_cast<Word*>(a.out));
}

}  // namespace

void move_rows(cudaStream_t stream, const MoveArguments& arguments) {
  const std::uintptr_t bits =
      bits_of(arguments.in, arguments.out, arguments.row_bytes, arguments.in_stride_bytes) |
      static_cast<std::uintptr_t>(arguments.out_stride_bytes);
  if (fits(bits, sizeof(uint4))) {
    move<uint4>(stream, arguments);
  } else {
    move<std::uint16_t>(stream, arguments);
  }
}

void scatter_rows(cudaStream_t stream, const void* in, std::int64_t in_stride_bytes, int repeat,
                  const std::int32_t* position, std::int64_t rows, std::int64_t row_bytes,
                  void* out) {
  const std::uintptr_t bits = bits_of(in, out, row_bytes, in_stride_bytes);
  if (fits(bits, sizeof(uint4))) {
    scatter<uint4>(stream, in, in_stride_bytes, repeat, position, rows, row_bytes, out);
  } else {
    scatter<std::uint16_t>(stream, in, in_stride_bytes, repeat, position, rows, row_bytes, out);
  }
}

void gather_rows(cudaStream_t stream, const void* in, std::int64_t in_stride_bytes,
                 const std::int32_t* source, std::int64_t rows, std::int64_t row_bytes, void* out) {
  if (fits(bits_of(in, out, row_bytes, in_stride_bytes), sizeof(uint4))) {
    gather<uint4>(stream, in, in_stride_bytes, source, rows, row_bytes, out);
  } else {
    gather<std::uint16_t>(stream, in, in_stride_bytes, source, rows, row_bytes, out);
  }
}

}  // namespace epsweep::cuda
