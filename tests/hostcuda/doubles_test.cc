// The ruler itself: the doubles must notice what a device would punish.
#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>

#include <gtest/gtest.h>

#include "cuda/cuda_memory.h"
#include "cuda/handles.h"
#include "cuda/launch.h"
#include "hostcuda/left_out.h"
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

// Under ASan the write itself would end the program.
__attribute__((no_sanitize("address"))) void write_unseen(unsigned char* at) {
  *at = 0;
}

TEST(HostCuda, writes_behind_device_memory_are_seen) {
  void* data = nullptr;
  EPS_CUDA(cudaMalloc(&data, 8));
  write_unseen(static_cast<unsigned char*>(data) + 8);
  EXPECT_THROW(cudaFree(data), std::logic_error);
}

__attribute__((no_sanitize("address"))) void read_unseen(const float* at, float& value) {
  value = *static_cast<const volatile float*>(at);
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

// A copy that is enqueued before its source is filled, or whose source is filled again before it
// is done, goes wrong on a quick or on a slow device.
int copied_value(unsigned long long seed, int before, int after) {
  hostcuda::set_seed(seed);
  const StreamHandle stream = make_stream();
  Buffer stage = make_pinned_buffer(4), back = make_pinned_buffer(4);
  Buffer device = make_device_buffer(4);
  stage.as<int>()[0] = before;
  EPS_CUDA(cudaMemcpyAsync(device.data(), stage.data(), 4, cudaMemcpyHostToDevice, stream.get()));
  stage.as<int>()[0] = after;
  EPS_CUDA(cudaMemcpyAsync(back.data(), device.data(), 4, cudaMemcpyDeviceToHost, stream.get()));
  EPS_CUDA(cudaStreamSynchronize(stream.get()));
  return back.as<int>()[0];
}

TEST(HostCuda, work_runs_at_once_under_some_seeds_and_late_under_others) {
  std::set<int> seen;
  for (unsigned long long seed = 0; seed < 50; ++seed) seen.insert(copied_value(seed, 7, 8));
  EXPECT_EQ(seen, (std::set<int>{7, 8}));
}

// However much another stream has to do, some seed leaves the one that does not wait behind it, and
// some seed lets it run ahead.
TEST(HostCuda, streams_run_far_ahead_of_each_other) {
  int first = 0, last = 0;
  for (unsigned long long seed = 0; seed < 50; seed += 3) {
    hostcuda::set_seed(seed);
    const StreamHandle busy = make_stream(), other = make_stream();
    std::vector<int> order;
    for (int i = 0; i < 40; ++i) {
      hostcuda::enqueue(busy.get(), [&order, i] {
        order.push_back(i);
        return hostcuda::Progress::done;
      });
    }
    hostcuda::enqueue(other.get(), [&order] {
      order.push_back(-1);
      return hostcuda::Progress::done;
    });
    hostcuda::drain_all();
    first += order.front() == -1 ? 1 : 0;
    last += order.back() == -1 ? 1 : 0;
  }
  EXPECT_GT(first, 0);
  EXPECT_GT(last, 0);
}

TEST(HostCuda, a_wait_that_is_left_out_is_missed_and_comes_back) {
  EXPECT_EQ(read_after_write(true, 1), 7);
  int wrong = 0;
  for (const std::string& wait : hostcuda::seen_waits()) {
    for (unsigned long long seed = 0; seed < 50; ++seed) {
      hostcuda::leave_out(wait);
      wrong += wait.starts_with("stream ") && read_after_write(true, seed) != 7 ? 1 : 0;
      hostcuda::leave_out("");
      EXPECT_EQ(read_after_write(true, seed), 7);
    }
  }
  EXPECT_GT(wrong, 0);
}

TEST(HostCuda, reads_beside_device_memory_give_no_number) {
  const StreamHandle stream = make_stream();
  Buffer device = make_device_buffer(4);
  float beside = 0;
  read_unseen(static_cast<const float*>(device.data()) + 1, beside);
  EXPECT_TRUE(std::isnan(beside));
}

TEST(HostCudaDeathTest, far_outside_device_memory_the_program_ends) {
  Buffer device = make_device_buffer(4);
  float value = 0;
  EXPECT_DEATH(read_unseen(static_cast<const float*>(device.data()) + 5000, value), "");
  EXPECT_DEATH(read_unseen(static_cast<const float*>(device.data()) - 5000, value), "");
}

TEST(HostCuda, copies_and_fills_stay_inside_their_buffers) {
  const StreamHandle stream = make_stream();
  Buffer device = make_device_buffer(8), pinned = make_pinned_buffer(8);
  auto* const at = static_cast<std::byte*>(device.data());
  EXPECT_NE(cudaMemcpyAsync(at + 4, pinned.data(), 8, cudaMemcpyHostToDevice, stream.get()),
            cudaSuccess);
  EXPECT_NE(cudaMemcpyAsync(pinned.data(), at, 9, cudaMemcpyDeviceToHost, stream.get()),
            cudaSuccess);
  EXPECT_NE(cudaMemsetAsync(at, 0, 9, stream.get()), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(at, 0, 8, stream.get()), cudaSuccess);
}

TEST(HostCuda, times_are_there_when_their_streams_were_waited_for) {
  hostcuda::set_seed(0);
  const StreamHandle stream = make_stream();
  const EventHandle begin = make_timed_event(), end = make_timed_event(),
                    untimed = make_wait_event();
  float ms = 0;
  EPS_CUDA(cudaEventRecord(begin.get(), stream.get()));
  EPS_CUDA(cudaEventRecord(untimed.get(), stream.get()));
  EPS_CUDA(cudaEventRecord(end.get(), stream.get()));
  EXPECT_EQ(cudaEventElapsedTime(&ms, begin.get(), end.get()), cudaErrorNotReady);
  EPS_CUDA(cudaStreamSynchronize(stream.get()));
  EXPECT_EQ(cudaEventElapsedTime(&ms, begin.get(), end.get()), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&ms, begin.get(), untimed.get()), cudaErrorInvalidResourceHandle);
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
