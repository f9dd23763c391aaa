// Marks on lanes: CUDA events, or clock readings. All marks exist before timing starts.
#pragma once

#include "device/lane.h"

namespace epsweep {

// Position in a pool of marks.
using MarkId = int;

class Timeline {
 public:
  virtual ~Timeline() = default;
  // Before marks whose times are to be read, with an idle lane: finds out where the device's times
  // stand on the host's clock. Returns by how many seconds at() may be off there; differences
  // between marks are not.
  virtual double start(Lane& lane) {
    static_cast<void>(lane);
    return 0;
  }
  // Costs well under 1 us; neither allocates nor blocks.
  virtual void mark(Lane& lane, MarkId id) = 0;
  // Work enqueued on the lane from now on runs after the mark was passed.
  virtual void wait(Lane& lane, MarkId id) = 0;
  // Seconds on the host's monotonic clock; the mark's lane must have been synchronized.
  virtual double at(MarkId id) const = 0;
  // CPU seconds this process had used at the mark; 0 where the device does the work.
  virtual double cpu_at(MarkId id) const = 0;
};

}  // namespace epsweep
