#include "cuda/cuda_lane.h"

#include "base/host_probe.h"

namespace epsweep::cuda {

EventTimeline::EventTimeline(int num_marks) {
  for (int i = 0; i < num_marks; ++i) events_.push_back(make_timed_event());
}

void EventTimeline::mark(Lane& lane, MarkId id) {
  if (id == 0) origin_s_ = monotonic_s();
  EPS_CUDA(cudaEventRecord(events_[static_cast<std::size_t>(id)].get(), stream_of(lane)));
}

void EventTimeline::wait(Lane& lane, MarkId id) {
  EPS_CUDA(cudaStreamWaitEvent(stream_of(lane), events_[static_cast<std::size_t>(id)].get(), 0));
}

double EventTimeline::at(MarkId id) const {
  float ms = 0;
  EPS_CUDA(cudaEventElapsedTime(&ms, events_.front().get(),
                                events_[static_cast<std::size_t>(id)].get()));
  return origin_s_ + static_cast<double>(ms) * 1e-3;
}

}  // namespace epsweep::cuda
