// The CUDA runtime calls that src/cuda makes, on host memory and the queues of stream_queue.h.
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>

#include <cuda_runtime_api.h>
#include <unistd.h>

#include "hostcuda/capture.h"
#include "hostcuda/device.h"
#include "hostcuda/device_memory.h"
#include "hostcuda/page_locked.h"
#include "hostcuda/stream_queue.h"

// The runtime's opaque handles.
struct CUstream_st {
  int number = 0;
};
struct CUevent_st {
  long long recorded = 0;  // times it was enqueued
  long long passed = 0;    // times a stream went by
  double time_s = 0;
};

namespace {

constexpr std::size_t kRedZone = 256;
constexpr unsigned char kGuard = 0xa5;
constexpr std::size_t kDeviceBytes = 8ULL << 30;

struct Allocation {
  std::size_t bytes = 0;
};

struct Memory {
  std::map<void*, Allocation> device, pinned;
  std::size_t used = 0;
};

Memory& memory() {
  static Memory instance;
  return instance;
}

void check_guards(void* data, std::size_t bytes) {
  const auto* begin = static_cast<unsigned char*>(data);
  for (std::size_t i = 0; i < kRedZone; ++i) {
    if (begin[bytes + i] != kGuard || *(begin - 1 - i) != kGuard) {
      throw std::logic_error("device memory was written outside an allocation");
    }
  }
}

bool is_pinned(const void* at) {
  const auto next = memory().pinned.upper_bound(const_cast<void*>(at));
  if (next == memory().pinned.begin()) return false;
  const auto& [begin, allocation] = *std::prev(next);
  return static_cast<const char*>(at) < static_cast<const char*>(begin) + allocation.bytes;
}

long long num_page_locked = 0;

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

}  // namespace

namespace hostcuda {

long long page_locked_allocations() {
  return num_page_locked;
}

bool on_device(const void* at, std::size_t bytes) {
  if (bytes == 0) return true;
  const auto next = memory().device.upper_bound(const_cast<void*>(at));
  if (next == memory().device.begin()) return false;
  const auto& [begin, allocation] = *std::prev(next);
  return static_cast<const char*>(at) + bytes <= static_cast<const char*>(begin) + allocation.bytes;
}

void set_compute_capability(int capability) {
  compute_capability = capability;
}

void check_device_memory() {
  for (const auto& [data, allocation] : memory().device) check_guards(data, allocation.bytes);
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
  properties->totalGlobalMem = kDeviceBytes;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() {
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  if (hostcuda::refuse_in_capture()) return cudaErrorStreamCaptureUnsupported;
  if (memory().used + bytes > kDeviceBytes) return cudaErrorMemoryAllocation;
  auto* block = static_cast<unsigned char*>(
      std::aligned_alloc(256, (bytes + 2 * kRedZone + 255) / 256 * 256));
  if (block == nullptr) return cudaErrorMemoryAllocation;
  std::memset(block, kGuard, kRedZone);
  std::memset(block + kRedZone, 0xff, bytes);
  std::memset(block + kRedZone + bytes, kGuard, kRedZone);
  *data = block + kRedZone;
  memory().device[*data] = {bytes};
  memory().used += bytes;
  return cudaSuccess;
}

cudaError_t cudaFree(void* data) {
  if (data == nullptr) return cudaSuccess;
  if (hostcuda::refuse_in_capture()) return cudaErrorStreamCaptureUnsupported;
  hostcuda::drain_all();
  const auto found = memory().device.find(data);
  if (found == memory().device.end()) return cudaErrorInvalidValue;
  check_guards(data, found->second.bytes);
  memory().used -= found->second.bytes;
  memory().device.erase(found);
  std::free(static_cast<unsigned char*>(data) - kRedZone);
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** data, std::size_t bytes) {
  if (hostcuda::refuse_in_capture()) return cudaErrorStreamCaptureUnsupported;
  ++num_page_locked;
  *data = std::malloc(bytes + 1);
  memory().pinned[*data] = {bytes + 1};
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* data) {
  if (hostcuda::refuse_in_capture()) return cudaErrorStreamCaptureUnsupported;
  hostcuda::drain_all();
  memory().pinned.erase(data);
  std::free(data);
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  *free_bytes = kDeviceBytes - memory().used;
  *total_bytes = kDeviceBytes;
  return cudaSuccess;
}

// Pageable memory makes a real copy wait for the host: never on a timed path, so refused here.
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (kind == cudaMemcpyHostToDevice && !is_pinned(from)) return cudaErrorInvalidValue;
  if (kind == cudaMemcpyDeviceToHost && !is_pinned(to)) return cudaErrorInvalidValue;
  hostcuda::enqueue(stream, copy_step(to, from, bytes));
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  if (hostcuda::refuse_in_capture()) return cudaErrorStreamCaptureUnsupported;
  hostcuda::drain_all();
  if (bytes > 0) std::memcpy(to, from, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
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
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  hostcuda::drain(stream);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (hostcuda::refuse_in_capture()) return cudaErrorStreamCaptureUnsupported;
  hostcuda::drain(stream);
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  if (hostcuda::refuse_in_capture()) return cudaErrorStreamCaptureUnsupported;
  hostcuda::drain_all();
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st;
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
  const long long number = ++event->recorded;
  hostcuda::enqueue(stream, [event, number] {
    event->passed = number;
    event->time_s = hostcuda::clock_s();
    return hostcuda::Progress::done;
  });
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (const auto captured = hostcuda::capture_wait(stream, event); captured.taken) {
    return captured.status;
  }
  hostcuda::enqueue(stream, [event, number = event->recorded] {
    return event->passed >= number ? hostcuda::Progress::done : hostcuda::Progress::waiting;
  });
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  if (start->passed == 0 || end->passed == 0) return cudaErrorInvalidResourceHandle;
  if (start->passed < start->recorded || end->passed < end->recorded) return cudaErrorNotReady;
  *ms = static_cast<float>((end->time_s - start->time_s) * 1e3);
  return cudaSuccess;
}

}  // extern "C"
