// A queue of device work: a CUDA stream, or the calling thread.
#pragma once

namespace epsweep {

class Lane {
 public:
  virtual ~Lane() = default;
  // Returns when everything enqueued so far is done.
  virtual void synchronize() = 0;
};

}  // namespace epsweep
