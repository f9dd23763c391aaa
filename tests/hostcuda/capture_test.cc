// The ruler itself: captures hold what CUDA's hold, and refuse what CUDA refuses.
#include <algorithm>

#include <gtest/gtest.h>

#include "base/error.h"
#include "cuda/cuda_lane.h"
#include "cuda/cuda_memory.h"
#include "cuda/launch.h"
#include "device/grouped_gemm.h"
#include "hostcuda/stream_queue.h"

namespace epsweep::cuda {
namespace {

void add_kernel(int* to, int value) {
  *to += value;
}

void add(cudaStream_t stream, Buffer& to, int value) {
  launch(stream, Grid{dim3(1), dim3(1)}, add_kernel, static_cast<int*>(to.data()), value);
}

Buffer zero() {
  Buffer buffer = make_device_buffer(4);
  buffer.as<int>()[0] = 0;
  return buffer;
}

TEST(Capture, keeps_work_and_runs_it_as_often_as_it_is_enqueued) {
  CudaLane lane;
  Buffer sum = zero();
  lane.begin_capture();
  add(lane.stream(), sum, 5);
  const auto replay = lane.end_capture();
  lane.synchronize();
  EXPECT_EQ(sum.as<int>()[0], 0);
  for (int i = 0; i < 3; ++i) replay->enqueue(lane);
  add(lane.stream(), sum, 100);
  lane.synchronize();
  EXPECT_EQ(sum.as<int>()[0], 115);
}

TEST(Capture, copies_arguments_and_reads_memory_anew) {
  CudaLane lane;
  Buffer from = make_pinned_buffer(4), to = zero();
  int value = 5;
  from.as<int>()[0] = 1;
  lane.begin_capture();
  EPS_CUDA(cudaMemcpyAsync(to.data(), from.data(), 4, cudaMemcpyHostToDevice, lane.stream()));
  add(lane.stream(), to, value);
  const auto replay = lane.end_capture();
  value = 7;
  from.as<int>()[0] = 10;
  replay->enqueue(lane);
  lane.synchronize();
  EXPECT_EQ(to.as<int>()[0], 15);
}

TEST(Capture, is_spoiled_by_what_waits_or_allocates) {
  using Call = cudaError_t (*)(CudaLane & lane);
  const Call calls[] = {
      [](CudaLane& lane) { return cudaStreamSynchronize(lane.stream()); },
      [](CudaLane&) { return cudaDeviceSynchronize(); },
      [](CudaLane&) {
        void* data = nullptr;
        return cudaMalloc(&data, 4);
      },
      [](CudaLane&) {
        void* data = nullptr;
        return cudaMallocHost(&data, 4);
      },
      [](CudaLane&) {
        int a = 0, b = 0;
        return cudaMemcpy(&a, &b, 4, cudaMemcpyHostToHost);
      },
  };
  for (const Call call : calls) {
    CudaLane lane;
    lane.begin_capture();
    EXPECT_EQ(call(lane), cudaErrorStreamCaptureUnsupported);
    EXPECT_THROW(lane.end_capture(), RunError);
  }
}

// On two streams, with or without an edge from the side stream back: sum = (0 + 1) * 2 + 10.
std::unique_ptr<Replay> capture_fork(CudaLane& lane, cudaStream_t side, Buffer& sum, bool joins) {
  const EventHandle begun = make_wait_event(), done = make_wait_event();
  lane.begin_capture();
  add(lane.stream(), sum, 1);
  EPS_CUDA(cudaEventRecord(begun.get(), lane.stream()));
  EPS_CUDA(cudaStreamWaitEvent(side, begun.get(), 0));
  launch(
      side, Grid{dim3(1), dim3(1)}, +[](int* to) { *to *= 2; }, static_cast<int*>(sum.data()));
  EPS_CUDA(cudaEventRecord(done.get(), side));
  if (joins) EPS_CUDA(cudaStreamWaitEvent(lane.stream(), done.get(), 0));
  add(lane.stream(), sum, 10);
  return lane.end_capture();
}

TEST(Capture, follows_forks_and_keeps_their_order) {
  for (unsigned long long seed = 0; seed < 50; ++seed) {
    hostcuda::set_seed(seed);
    CudaLane lane;
    const StreamHandle side = make_stream();
    Buffer sum = zero();
    const auto replay = capture_fork(lane, side.get(), sum, true);
    replay->enqueue(lane);
    lane.synchronize();
    EXPECT_EQ(sum.as<int>()[0], 12);
    replay->enqueue(lane);
    replay->enqueue(lane);
    lane.synchronize();
    EXPECT_EQ(sum.as<int>()[0], ((12 + 1) * 2 + 10 + 1) * 2 + 10);
  }
}

TEST(Capture, refuses_forks_that_do_not_come_back) {
  CudaLane lane;
  const StreamHandle side = make_stream();
  Buffer sum = zero();
  EXPECT_THROW(capture_fork(lane, side.get(), sum, false), RunError);
  // Both streams are as before.
  add(side.get(), sum, 3);
  EPS_CUDA(cudaStreamSynchronize(side.get()));
  EXPECT_EQ(sum.as<int>()[0], 3);
}

TEST(Capture, refuses_edges_across_its_border) {
  CudaLane lane, other;
  const EventHandle outside = make_wait_event(), inside = make_wait_event();
  EPS_CUDA(cudaEventRecord(outside.get(), other.stream()));
  lane.begin_capture();
  EXPECT_EQ(cudaStreamWaitEvent(lane.stream(), outside.get(), 0), cudaErrorStreamCaptureIsolation);
  EXPECT_THROW(lane.end_capture(), RunError);
  lane.begin_capture();
  EPS_CUDA(cudaEventRecord(inside.get(), lane.stream()));
  lane.end_capture();
  EXPECT_EQ(cudaStreamWaitEvent(other.stream(), inside.get(), 0), cudaErrorCapturedEvent);
}

TEST(Capture, marks_around_a_replay_time_it) {
  CudaLane lane;
  EventTimeline timeline(2);
  Buffer sum = zero();
  lane.begin_capture();
  add(lane.stream(), sum, 1);
  const auto replay = lane.end_capture();
  EXPECT_THROW(timeline.at(1), RunError);
  for (int i = 0; i < 2; ++i) {
    EXPECT_GE(timeline.start(lane), 0);
    timeline.mark(lane, 0);
    replay->enqueue(lane);
    timeline.mark(lane, 1);
    lane.synchronize();
    // What goes before a replay, the kernel, what comes after it and the second mark are a step
    // each, of a microsecond.
    EXPECT_NEAR(timeline.at(1) - timeline.at(0), 4e-6, 1e-9);
  }
}

// What experts of two layers would share if they shared it: pointers that a graph reads when it
// runs, long after the next layer was captured.
TEST(Capture, grouped_gemms_of_layers_do_not_share_what_replays_read) {
  const GemmShape shape = {.num_experts = 2, .n = 16, .k = 16, .dtype = DType::fp32};
  const GroupedGemmEntry& entry = GroupedGemmCatalog::instance().at("cublas_grouped");
  CudaLane lane;
  std::vector<std::unique_ptr<GroupedGemm>> gemms;
  std::vector<Buffer> x, y;
  std::vector<std::unique_ptr<Replay>> replays;
  const std::vector<std::int64_t> rows[] = {{3, 0}, {1, 2}};
  std::vector<std::vector<float>> direct;
  for (std::size_t layer = 0; layer < 2; ++layer) {
    gemms.push_back(entry.make(shape, 1));
    gemms.back()->prepare([&](int expert) {
      return PayloadStream{.words = RandomStream(2 * layer + static_cast<std::size_t>(expert),
                                                 epsweep::Stream::test),
                           .unit = 1.0F};
    });
    gemms.back()->warm(rows[layer]);
    x.push_back(make_device_buffer(3 * 16 * 4));
    y.push_back(make_device_buffer(3 * 16 * 4));
    std::ranges::fill(x.back().as<float>(), 1.0F);
    gemms.back()->run(lane, x.back(), y.back(), rows[layer]);
    lane.synchronize();
    direct.emplace_back(y.back().as<float>().begin(), y.back().as<float>().end());
  }
  for (std::size_t layer = 0; layer < 2; ++layer) {
    lane.begin_capture();
    gemms[layer]->run(lane, x[layer], y[layer], rows[layer]);
    replays.push_back(lane.end_capture());
  }
  for (Buffer& out : y) std::ranges::fill(out.as<float>(), 0.0F);
  for (const auto& replay : replays) replay->enqueue(lane);
  lane.synchronize();
  EXPECT_NE(direct[0], direct[1]);
  for (std::size_t layer = 0; layer < 2; ++layer) {
    EXPECT_TRUE(std::ranges::equal(y[layer].as<float>(), direct[layer])) << layer;
  }
}

}  // namespace
}  // namespace epsweep::cuda
