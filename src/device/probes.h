// What a device is timed with to find its ceilings: as little as possible besides moving memory.
#pragma once

#include <cstdint>

#include "device/buffer.h"
#include "device/lane.h"

namespace epsweep {

// All calls but stream_bytes() enqueue on the lane.
class Probes {
 public:
  virtual ~Probes() = default;
  // As much memory as it takes to time memory, and neither caches nor the start of the work.
  virtual std::int64_t stream_bytes() const = 0;
  // Reads the first `bytes`, a multiple of 16, once, with all threads the rank has.
  virtual void read(Lane& lane, const Buffer& from, std::int64_t bytes) = 0;
  // Copies the first `bytes`, a multiple of 16, to the `bytes` behind them: twice that moves.
  virtual void copy(Lane& lane, Buffer& buffer, std::int64_t bytes) = 0;
  // The smallest piece of work there is.
  virtual void nothing(Lane& lane) = 0;
};

}  // namespace epsweep
