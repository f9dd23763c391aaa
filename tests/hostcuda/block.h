// Runs the threads of a CUDA block as fibers of one CPU thread: a test double, not a simulator.
#pragma once

#include <cstddef>
#include <functional>

#include <vector_types.h>

namespace hostcuda {

// Every thread of every block, blocks one after the other, threads of a block interleaved at
// barriers in an order that depends on the seed. Throws std::logic_error where a barrier is reached
// by some threads of a block (or warp) only, and where a block wrote behind its shared memory.
void run_grid(dim3 blocks, dim3 threads, const std::function<void()>& thread);

// Of all later blocks.
void set_thread_seed(unsigned long long seed);

// The running block's object of that key.
void* shared_memory(const void* key, std::size_t bytes);

enum class Barrier { block, warp };
void wait_at(Barrier barrier);
// The calling thread's lane number in its warp, and the warp's exchange slots (32 of 8 bytes).
int lane();
unsigned long long* warp_slots();

}  // namespace hostcuda

// What kernels see.
inline thread_local uint3 threadIdx, blockIdx;
inline thread_local dim3 blockDim, gridDim;

inline void __syncthreads() {
  hostcuda::wait_at(hostcuda::Barrier::block);
}
inline void __syncwarp(unsigned = 0xffffffffU) {
  hostcuda::wait_at(hostcuda::Barrier::warp);
}

// Only full warps shuffle here.
template <typename T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  static_assert(sizeof(T) <= sizeof(unsigned long long));
  unsigned long long* slots = hostcuda::warp_slots();
  __builtin_memcpy(slots + hostcuda::lane(), &value, sizeof(T));
  __syncwarp();
  T other;
  __builtin_memcpy(&other, slots + (hostcuda::lane() ^ mask), sizeof(T));
  __syncwarp();
  return other;
}
