// The ruler itself: the doubles must notice what a device would punish.
#include <stdexcept>

#include <gtest/gtest.h>

#include "cuda/cuda_memory.h"
#include "cuda/handles.h"
#include "cuda/launch.h"
#include "hostcuda/stream_queue.h"

namespace epsweep::cuda {
namespace {

struct Pair {
  int value[2];
};

void without_barrier(int* out) {
  Pair& shared = shared_memory<Pair>();
  shared.value[threadIdx.x] = static_cast<int>(threadIdx.x) + 1;
  out[threadIdx.x] = shared.value[1 - threadIdx.x];
}

void with_barrier(int* out) {
  Pair& shared = shared_memory<Pair>();
  shared.value[threadIdx.x] = static_cast<int>(threadIdx.x) + 1;
  __syncthreads();
  out[threadIdx.x] = shared.value[1 - threadIdx.x];
}

void divergent_barrier(int*) {
  if (threadIdx.x == 0) __syncthreads();
  if (threadIdx.x == 1) __syncwarp();
}

void behind_shared_memory(int*) {
  (&shared_memory<Pair>().value[0])[2 + threadIdx.x] = 1;
}

// Runs a kernel of two threads and returns what they wrote.
std::vector<int> run(void (*kernel)(int*)) {
  const StreamHandle stream = make_stream();
  Buffer out = make_device_buffer(8);
  launch(stream.get(), Grid{dim3(1), dim3(2)}, kernel, static_cast<int*>(out.data()));
  hostcuda::drain(stream.get());
  return {out.as<int>()[0], out.as<int>()[1]};
}

TEST(HostCuda, a_missing_barrier_shows) {
  EXPECT_EQ(run(with_barrier), (std::vector<int>{2, 1}));
  EXPECT_NE(run(without_barrier), (std::vector<int>{2, 1}));
}

TEST(HostCuda, barriers_that_only_some_reach_are_refused) {
  EXPECT_THROW(run(divergent_barrier), std::logic_error);
}

TEST(HostCuda, writes_behind_shared_memory_are_seen) {
  EXPECT_THROW(run(behind_shared_memory), std::logic_error);
}

TEST(HostCuda, writes_behind_device_memory_are_seen) {
  void* data = nullptr;
  EPS_CUDA(cudaMalloc(&data, 8));
  static_cast<unsigned char*>(data)[8] = 0;
  EXPECT_THROW(cudaFree(data), std::logic_error);
  static_cast<unsigned char*>(data)[8] = 0xa5;
  cudaFree(data);
}

// Two streams without an event between them: some order of steps reads before the write.
int read_after_write(bool has_wait, unsigned long long seed) {
  hostcuda::set_seed(seed);
  const StreamHandle writer = make_stream(), reader = make_stream();
  const EventHandle written = make_wait_event();
  Buffer value = make_pinned_buffer(4), copy = make_pinned_buffer(4);
  Buffer device = make_device_buffer(4);
  value.as<int>()[0] = 7;
  copy.as<int>()[0] = 0;
  EPS_CUDA(cudaMemcpyAsync(device.data(), value.data(), 4, cudaMemcpyHostToDevice, writer.get()));
  EPS_CUDA(cudaEventRecord(written.get(), writer.get()));
  if (has_wait) EPS_CUDA(cudaStreamWaitEvent(reader.get(), written.get(), 0));
  EPS_CUDA(cudaMemcpyAsync(copy.data(), device.data(), 4, cudaMemcpyDeviceToHost, reader.get()));
  EPS_CUDA(cudaStreamSynchronize(reader.get()));
  EPS_CUDA(cudaStreamSynchronize(writer.get()));
  return copy.as<int>()[0];
}

TEST(HostCuda, a_missing_wait_shows_under_some_seed) {
  int wrong_without = 0;
  for (unsigned long long seed = 0; seed < 50; ++seed) {
    EXPECT_EQ(read_after_write(true, seed), 7);
    wrong_without += read_after_write(false, seed) == 7 ? 0 : 1;
  }
  EXPECT_GT(wrong_without, 0);
}

TEST(HostCuda, copies_of_a_stream_want_page_locked_memory) {
  const StreamHandle stream = make_stream();
  Buffer device = make_device_buffer(4);
  int value = 7;
  EXPECT_NE(cudaMemcpyAsync(device.data(), &value, 4, cudaMemcpyHostToDevice, stream.get()),
            cudaSuccess);
}

}  // namespace
}  // namespace epsweep::cuda
