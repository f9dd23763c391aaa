#include "cuda/kernels/elements.h"
#include "cuda/kernels/streams.h"
#include "cuda/launch.h"

namespace epsweep::cuda {
namespace {

constexpr int kThreads = 256;
// Loads of a thread that are on their way at once.
constexpr int kInFlight = 4;

struct BlockWords {
  std::uint32_t of_thread[kThreads];
};

__global__ void read_stream_kernel(const uint4* from, std::int64_t count, std::uint32_t* words) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  std::uint32_t mixed = 0;
  for (; i + (kInFlight - 1) * step < count; i += kInFlight * step) {
    uint4 read[kInFlight];
#pragma unroll
    for (int j = 0; j < kInFlight; ++j) read[j] = from[i + j * step];
#pragma unroll
    for (int j = 0; j < kInFlight; ++j) mixed ^= read[j].x ^ read[j].y ^ read[j].z ^ read[j].w;
  }
  for (; i < count; i += step) mixed ^= from[i].x ^ from[i].y ^ from[i].z ^ from[i].w;

  BlockWords& block = shared_memory<BlockWords>();
  block.of_thread[threadIdx.x] = mixed;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < half) {
      block.of_thread[threadIdx.x] ^= block.of_thread[threadIdx.x + half];
    }
  }
  if (threadIdx.x == 0) words[blockIdx.x] = block.of_thread[0];
}

__global__ void nothing_kernel() {}

}  // namespace

void read_stream(cudaStream_t stream, const void* from, std::int64_t bytes, std::uint32_t* words) {
  const std::int64_t count = bytes / static_cast<std::int64_t>(sizeof(uint4));
  const unsigned blocks = blocks_for(count, kThreads * kInFlight);
  const Grid grid{dim3(blocks < kReadStreamWords ? blocks : kReadStreamWords), dim3(kThreads)};
  launch(stream, grid, read_stream_kernel, static_cast<const uint4*>(from), count, words);
}

void launch_nothing(cudaStream_t stream) {
  launch(stream, Grid{dim3(1), dim3(1)}, nothing_kernel);
}

}  // namespace epsweep::cuda
