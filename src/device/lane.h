// A queue of device work: a CUDA stream, or the calling thread.
#pragma once

namespace epsweep {

class Lane {
 public:
  virtual ~Lane() = default;
  // Returns when everything enqueued so far is done.
  virtual void synchronize() = 0;
  // For profilers: what is enqueued in between belongs to `name`. Ranges may nest.
  virtual void begin_range(const char* name) { static_cast<void>(name); }
  virtual void end_range() {}
};

}  // namespace epsweep
