// Stream capture: what captured streams are given is kept instead of run, and runs whenever the
// graph is launched. Only order within streams and between an event's record and its waits is kept.
// What a capture may not contain is refused as CUDA refuses it. A test double.
#pragma once

#include <driver_types.h>

#include "hostcuda/stream_queue.h"

namespace hostcuda {

bool is_capturing(cudaStream_t stream);
// Whether anything is: calls that allocate, or wait for the device, are errors then. They spoil the
// capture, whose end is refused.
bool refuse_in_capture();

// Each returns false where it is none of the capture's business.
bool capture_step(cudaStream_t stream, const Step& step);
struct EventResult {
  bool taken = false;
  cudaError_t status = cudaSuccess;
};
EventResult capture_record(cudaEvent_t event, cudaStream_t stream);
EventResult capture_wait(cudaStream_t stream, cudaEvent_t event);

}  // namespace hostcuda
