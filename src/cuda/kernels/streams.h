// Kernels that read memory and do nothing else, and one that does nothing at all. C++17.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace epsweep::cuda {

constexpr int kReadStreamWords = 8192;

// Reads `bytes`, a multiple of 16, of 16-byte aligned memory once. `words` [kReadStreamWords], of
// which as many are written as the launch has blocks, get the exclusive or of what each block read;
// without it nothing need be read. Enqueues.
void read_stream(cudaStream_t stream, const void* from, std::int64_t bytes, std::uint32_t* words);

// Enqueues a kernel of one thread that returns at once.
void launch_nothing(cudaStream_t stream);

}  // namespace epsweep::cuda
