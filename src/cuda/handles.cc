#include "cuda/handles.h"

namespace epsweep::cuda {

StreamHandle make_stream() {
  cudaStream_t stream = nullptr;
  EPS_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return StreamHandle(stream);
}

EventHandle make_timed_event() {
  cudaEvent_t event = nullptr;
  EPS_CUDA(cudaEventCreateWithFlags(&event, cudaEventDefault));
  return EventHandle(event);
}

EventHandle make_wait_event() {
  cudaEvent_t event = nullptr;
  EPS_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return EventHandle(event);
}

}  // namespace epsweep::cuda
