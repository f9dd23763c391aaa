#include "cuda/cuda_lane.h"

#include "base/host_probe.h"

namespace epsweep::cuda {
namespace {

class GraphReplay final : public Replay {
 public:
  explicit GraphReplay(GraphExecHandle graph) : graph_(std::move(graph)) {}
  void enqueue(Lane& lane) override { EPS_CUDA(cudaGraphLaunch(graph_.get(), stream_of(lane))); }

 private:
  GraphExecHandle graph_;
};

}  // namespace

void CudaLane::begin_capture() {
  EPS_CUDA(cudaStreamBeginCapture(stream_.get(), cudaStreamCaptureModeThreadLocal));
}

std::unique_ptr<Replay> CudaLane::end_capture() {
  cudaGraph_t captured = nullptr;
  EPS_CUDA(cudaStreamEndCapture(stream_.get(), &captured));
  const GraphHandle graph(captured);
  cudaGraphExec_t made = nullptr;
  EPS_CUDA(cudaGraphInstantiate(&made, graph.get(), 0));
  GraphExecHandle exec(made);
  // Else the first launch would pay for it.
  EPS_CUDA(cudaGraphUpload(exec.get(), stream_.get()));
  synchronize();
  return std::make_unique<GraphReplay>(std::move(exec));
}

EventTimeline::EventTimeline(int num_marks) {
  for (int i = 0; i < num_marks; ++i) events_.push_back(make_timed_event());
}

// A reading that was disturbed is repeated, a few times at most.
double EventTimeline::start(Lane& lane) {
  constexpr int kTries = 5;
  constexpr double kGoodEnoughS = 20e-6;
  double width_s = 0;
  for (int i = 0; i < kTries; ++i) {
    const double before_s = monotonic_s();
    EPS_CUDA(cudaEventRecord(origin_.get(), stream_of(lane)));
    lane.synchronize();
    width_s = monotonic_s() - before_s;
    origin_s_ = before_s + width_s / 2;
    if (width_s < kGoodEnoughS) break;
  }
  return width_s / 2;
}

void EventTimeline::mark(Lane& lane, MarkId id) {
  EPS_CUDA(cudaEventRecord(events_[static_cast<std::size_t>(id)].get(), stream_of(lane)));
}

void EventTimeline::wait(Lane& lane, MarkId id) {
  EPS_CUDA(cudaStreamWaitEvent(stream_of(lane), events_[static_cast<std::size_t>(id)].get(), 0));
}

double EventTimeline::at(MarkId id) const {
  float ms = 0;
  EPS_CUDA(cudaEventElapsedTime(&ms, origin_.get(), events_[static_cast<std::size_t>(id)].get()));
  return origin_s_ + static_cast<double>(ms) * 1e-3;
}

}  // namespace epsweep::cuda
