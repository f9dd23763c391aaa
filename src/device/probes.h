// What a device is timed with to find its ceilings: as little as possible besides moving memory.
#pragma once

#include <cstdint>

#include "device/buffer.h"
#include "device/lane.h"

namespace epsweep {

// A piece of a buffer; begin and bytes are multiples of 16.
struct BufferPart {
  std::int64_t begin = 0, bytes = 0;
};

inline bool holds(const Buffer& buffer, const BufferPart& part) {
  return part.begin >= 0 && part.bytes >= 0 && part.begin % 16 == 0 && part.bytes % 16 == 0 &&
         part.begin + part.bytes <= buffer.bytes();
}

// All calls but stream_bytes() enqueue on the lane.
class Probes {
 public:
  virtual ~Probes() = default;
  // As much memory as it takes to time memory, and neither caches nor the start of the work.
  virtual std::int64_t stream_bytes() const = 0;
  // Reads the part once, with all threads the rank has.
  virtual void read(Lane& lane, const Buffer& from, const BufferPart& part) = 0;
  // Copies the part to `to`, a multiple of 16, where it does not overlap: twice its bytes move.
  virtual void copy(Lane& lane, Buffer& buffer, const BufferPart& part, std::int64_t to) = 0;
  // The smallest piece of work there is.
  virtual void nothing(Lane& lane) = 0;
};

}  // namespace epsweep
