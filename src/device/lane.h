// A queue of device work: a CUDA stream, or the calling thread.
#pragma once

#include <memory>

#include "base/error.h"

namespace epsweep {

class Lane;

// Work that was captured, to be enqueued as one piece as often as wanted. It reads memory when it
// runs, and calls' arguments as they were when it was captured.
class Replay {
 public:
  virtual ~Replay() = default;
  virtual void enqueue(Lane& lane) = 0;
};

class Lane {
 public:
  virtual ~Lane() = default;
  // Returns when everything enqueued so far is done.
  virtual void synchronize() = 0;
  // What is enqueued from here to end_capture(), on this lane and where it forks to, is kept
  // instead of run. In between nothing may allocate or wait for the device: that is an error. Of
  // backends that list Launch::graph (BackendInfo); others throw RunError.
  virtual void begin_capture() { throw RunError("this kind of lane captures nothing"); }
  // Waits until the work is ready to be enqueued.
  virtual std::unique_ptr<Replay> end_capture() {
    throw RunError("this kind of lane captures nothing");
  }
  // For profilers: what is enqueued in between belongs to `name`. Ranges may nest.
  virtual void begin_range(const char* name) { static_cast<void>(name); }
  virtual void end_range() {}
};

}  // namespace epsweep
