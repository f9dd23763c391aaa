// Mutations made while the program runs: one wait of the sources under test is left out, as if its
// line were deleted, so that tests can show that something notices. A test double.
#pragma once

#include <string>
#include <vector>

namespace hostcuda {

enum class Wait {
  host,    // the host waits for a stream or the device
  stream,  // a stream waits for an event
  nccl,    // the host waits until NCCL has taken its calls
};

// Asked by every wait of the doubles. A wait is told by the place that asks for it: the return
// address in the program's file, beyond functions that do nothing but wait.
bool is_left_out(Wait wait);

// Places that asked so far: "stream 1a2b0".
std::vector<std::string> seen_waits();
// From now on the waits of one place are left out; "" for none. "stream 1a2b0 2/3" leaves out the
// third of every three.
void leave_out(const std::string& wait);

// Nothing is left out while it lives.
class NothingLeftOut {
 public:
  NothingLeftOut();
  ~NothingLeftOut();
  NothingLeftOut(const NothingLeftOut&) = delete;
  NothingLeftOut& operator=(const NothingLeftOut&) = delete;

 private:
  std::string before_;
};

}  // namespace hostcuda
