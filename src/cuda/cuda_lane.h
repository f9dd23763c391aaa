// A CUDA stream as a lane, and events as its marks.
#pragma once

#include <memory>
#include <vector>

#include <nvtx3/nvToolsExt.h>

#include "cuda/handles.h"
#include "device/lane.h"
#include "device/timeline.h"

namespace epsweep::cuda {

class CudaLane final : public Lane {
 public:
  CudaLane() : stream_(make_stream()) {}
  void synchronize() override { EPS_CUDA(cudaStreamSynchronize(stream_.get())); }
  // Of this thread only: NCCL may allocate on its own meanwhile.
  void begin_capture() override;
  std::unique_ptr<Replay> end_capture() override;

  // NVTX ranges of the enqueuing thread; profilers carry them over to the kernels.
  void begin_range(const char* name) override { nvtxRangePushA(name); }
  void end_range() override { nvtxRangePop(); }
  cudaStream_t stream() const { return stream_.get(); }

 private:
  StreamHandle stream_;
};

// Every lane of this backend is a CudaLane.
inline cudaStream_t stream_of(Lane& lane) {
  return static_cast<CudaLane&>(lane).stream();
}

// All events exist from the start. Times are event distances from an event of start(), whose place
// is between two readings of the host's clock: differences between marks are the device's own (half
// a microsecond), their place on the host's clock is known to half the distance of the readings.
class EventTimeline final : public Timeline {
 public:
  explicit EventTimeline(int num_marks);
  double start(Lane& lane) override;
  void mark(Lane& lane, MarkId id) override;
  void wait(Lane& lane, MarkId id) override;
  double at(MarkId id) const override;
  double cpu_at(MarkId) const override { return 0; }

 private:
  std::vector<EventHandle> events_;
  EventHandle origin_ = make_timed_event();
  double origin_s_ = 0;
};

}  // namespace epsweep::cuda
