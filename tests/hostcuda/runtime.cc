// The CUDA runtime calls that src/cuda makes, on host memory and the queues of stream_queue.h.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include <cuda_runtime_api.h>
#include <unistd.h>

#include "hostcuda/capture.h"
#include "hostcuda/device.h"
#include "hostcuda/device_memory.h"
#include "hostcuda/left_out.h"
#include "hostcuda/stream_queue.h"

// The runtime's opaque handles.
struct CUstream_st {
  int number = 0;
};
// What a stream does with an event may come after the event was destroyed.
struct EventState {
  long long recorded = 0;  // times it was enqueued
  long long passed = 0;    // times a stream went by
  double time_s = 0;
};
struct CUevent_st {
  std::shared_ptr<EventState> state = std::make_shared<EventState>();
  bool has_time = true;
};

namespace {

// Devices of the host, which its ranks see alike; absent where every rank has one of its own.
std::optional<int> host_devices() {
  const char* text = std::getenv("EPSWEEP_HOSTCUDA_DEVICES");
  return text == nullptr ? std::nullopt : std::optional(std::atoi(text));
}

// 0 stands for no driver.
int driver_version() {
  const char* text = std::getenv("EPSWEEP_HOSTCUDA_DRIVER");
  return text == nullptr ? CUDART_VERSION : std::atoi(text);
}

int current_device = 0;

hostcuda::Step copy_step(void* to, const void* from, std::size_t bytes) {
  return [=] {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return hostcuda::Progress::done;
  };
}

int compute_capability = hostcuda::kComputeCapability;

// Pageable memory makes a real copy wait for the host: never on a timed path, so refused here, as
// are ranges that leave their allocation.
bool can_copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  const auto host = hostcuda::in_pinned, device = hostcuda::on_device;
  if (kind == cudaMemcpyHostToDevice) return host(from, bytes) && device(to, bytes);
  if (kind == cudaMemcpyDeviceToHost) return device(from, bytes) && host(to, bytes);
  return kind == cudaMemcpyDeviceToDevice && device(from, bytes) && device(to, bytes);
}

}  // namespace

namespace hostcuda {

void set_compute_capability(int capability) {
  compute_capability = capability;
}

}  // namespace hostcuda

extern "C" {

const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess ? "no error" : "error of the host double";
}
cudaError_t cudaGetDeviceCount(int* count) {
  if (driver_version() < CUDART_VERSION) return cudaErrorInsufficientDriver;
  *count = host_devices().value_or(1);
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= host_devices().value_or(1)) return cudaErrorInvalidDevice;
  current_device = device;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  switch (attribute) {
    case cudaDevAttrL2CacheSize:
      *value = 1 << 16;
      break;
    case cudaDevAttrComputeCapabilityMajor:
      *value = compute_capability / 10;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *value = compute_capability % 10;
      break;
    default:
      *value = 1;
  }
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = driver_version();
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::strcpy(properties->name, "hostcuda (a test double, no GPU)");
  const int id = host_devices() ? current_device : getpid();
  for (int i = 0; i < 3; ++i) properties->uuid.bytes[i] = static_cast<char>(id >> (8 * i));
  properties->l2CacheSize = 1 << 16;
  properties->major = compute_capability / 10;
  properties->minor = compute_capability % 10;
  properties->multiProcessorCount = 1;
  properties->totalGlobalMem = hostcuda::device_bytes();
  return cudaSuccess;
}
cudaError_t cudaGetLastError() {
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  if (hostcuda::refuse_in_capture()) return cudaErrorStreamCaptureUnsupported;
  *data = hostcuda::allocate_device(bytes);
  return *data == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

// Waits for everything, as the real one does.
cudaError_t cudaFree(void* data) {
  if (data == nullptr) return cudaSuccess;
  if (hostcuda::refuse_in_capture()) return cudaErrorStreamCaptureUnsupported;
  hostcuda::drain_all();
  return hostcuda::free_device(data) ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaMallocHost(void** data, std::size_t bytes) {
  if (hostcuda::refuse_in_capture()) return cudaErrorStreamCaptureUnsupported;
  *data = hostcuda::allocate_pinned(bytes);
  return *data == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

// Nobody promises a wait here: what still uses the memory finds something else in it.
cudaError_t cudaFreeHost(void* data) {
  if (hostcuda::refuse_in_capture()) return cudaErrorStreamCaptureUnsupported;
  hostcuda::free_pinned(data);
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  *free_bytes = hostcuda::device_bytes() - hostcuda::device_bytes_used();
  *total_bytes = hostcuda::device_bytes();
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (!can_copy(to, from, bytes, kind)) return cudaErrorInvalidValue;
  hostcuda::enqueue(stream, copy_step(to, from, bytes));
  return cudaSuccess;
}

// On the legacy default stream, which non-blocking streams are not waited for by.
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  if (hostcuda::refuse_in_capture()) return cudaErrorStreamCaptureUnsupported;
  if (bytes > 0) std::memcpy(to, from, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  if (!hostcuda::on_device(to, bytes)) return cudaErrorInvalidValue;
  hostcuda::enqueue(stream, [=] {
    if (bytes > 0) std::memset(to, value, bytes);
    return hostcuda::Progress::done;
  });
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new CUstream_st;
  return cudaSuccess;
}
// Returns at once; what is queued still runs.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  hostcuda::close(stream);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (hostcuda::refuse_in_capture()) return cudaErrorStreamCaptureUnsupported;
  if (!hostcuda::is_left_out(hostcuda::Wait::host)) hostcuda::drain(stream);
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  if (hostcuda::refuse_in_capture()) return cudaErrorStreamCaptureUnsupported;
  if (!hostcuda::is_left_out(hostcuda::Wait::host)) hostcuda::drain_all();
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  *event = new CUevent_st;
  (*event)->has_time = (flags & cudaEventDisableTiming) == 0;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (const auto captured = hostcuda::capture_record(event, stream); captured.taken) {
    return captured.status;
  }
  const long long number = ++event->state->recorded;
  hostcuda::enqueue(stream, [state = event->state, number] {
    state->passed = number;
    state->time_s = hostcuda::clock_s();
    return hostcuda::Progress::done;
  });
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (hostcuda::is_left_out(hostcuda::Wait::stream)) return cudaSuccess;
  if (const auto captured = hostcuda::capture_wait(stream, event); captured.taken) {
    return captured.status;
  }
  hostcuda::enqueue(stream, [state = event->state, number = event->state->recorded] {
    return state->passed >= number ? hostcuda::Progress::done : hostcuda::Progress::waiting;
  });
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  const EventState &from = *start->state, &to = *end->state;
  if (!start->has_time || !end->has_time || from.recorded == 0 || to.recorded == 0) {
    return cudaErrorInvalidResourceHandle;
  }
  if (from.passed < from.recorded || to.passed < to.recorded) return cudaErrorNotReady;
  *ms = static_cast<float>((to.time_s - from.time_s) * 1e3);
  return cudaSuccess;
}

}  // extern "C"
