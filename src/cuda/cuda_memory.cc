#include "cuda/cuda_memory.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "base/error.h"
#include "cuda/check.h"

namespace epsweep::cuda {
namespace {

double gib(std::size_t bytes) {
  return static_cast<double>(bytes) / 0x1.0p30;
}

}  // namespace

Buffer make_device_buffer(std::int64_t bytes) {
  EPS_EXPECT(bytes >= 0, "a buffer cannot have a negative size");
  if (bytes == 0) return Buffer(nullptr, 0, [](void*) {});
  void* data = nullptr;
  const auto wanted = static_cast<std::size_t>(bytes);
  if (const cudaError_t status = cudaMalloc(&data, wanted); status != cudaSuccess) {
    cudaGetLastError();  // an allocation that failed must not fail the next call too
    std::size_t free_bytes = 0, total_bytes = 0;
    EPS_CUDA(cudaMemGetInfo(&free_bytes, &total_bytes));
    throw RunError(fmt::format(
        "cannot allocate {} bytes ({:.2f} GiB) of device memory, {:.2f} of {:.2f} GiB are free: {}",
        bytes, gib(wanted), gib(free_bytes), gib(total_bytes), cudaGetErrorString(status)));
  }
  return Buffer(data, bytes, [](void* memory) { cudaFree(memory); });
}

void grow_buffer(Buffer& buffer, std::int64_t bytes) {
  if (buffer.bytes() >= bytes) return;
  buffer = Buffer();  // first, so that both need not fit
  buffer = make_device_buffer(bytes);
}

Buffer make_pinned_buffer(std::int64_t bytes) {
  EPS_EXPECT(bytes >= 0, "a buffer cannot have a negative size");
  if (bytes == 0) return Buffer(nullptr, 0, [](void*) {});
  void* data = nullptr;
  EPS_CUDA(cudaMallocHost(&data, static_cast<std::size_t>(bytes)));
  return Buffer(data, bytes, [](void* memory) { cudaFreeHost(memory); });
}

}  // namespace epsweep::cuda
