#include "cuda/device_choice.h"

#include <array>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "base/error.h"
#include "cuda/check.h"

namespace epsweep::cuda {
namespace {

int count_devices() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorInsufficientDriver) {
    int driver = 0;
    cudaDriverGetVersion(&driver);
    throw ConfigError(
        driver == 0
            ? std::string("backend cuda: no NVIDIA driver is loaded on this host")
            : fmt::format("backend cuda: the driver serves CUDA {}.{}, this program needs {}.{}",
                          driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000,
                          CUDART_VERSION % 1000 / 10));
  }
  if (status == cudaErrorNoDevice || (status == cudaSuccess && count == 0)) {
    throw ConfigError("backend cuda: no GPU is visible on this host (CUDA_VISIBLE_DEVICES?)");
  }
  EPS_CUDA(status);
  return count;
}

std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (std::size_t i = 0; i < sizeof(uuid.bytes); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

}  // namespace

int device_index(const BackendOptions& options, int visible) {
  if (options.device) {
    if (*options.device < visible) return *options.device;
    throw ConfigError(fmt::format("backend cuda: there is no GPU {}: {} visible on this host",
                                  *options.device, visible));
  }
  if (options.local_size <= visible) return options.local_rank;
  if (visible == 1 || options.sharing == DeviceSharing::allow) return options.local_rank % visible;
  throw ConfigError(fmt::format(
      "backend cuda: {} ranks on this host, but {} GPUs visible: start at most {} ranks "
      "per host, or let them share with --allow-shared-gpu",
      options.local_size, visible, visible));
}

DeviceFacts choose_device(const BackendOptions& options) {
  const int count = count_devices();
  DeviceFacts facts;
  facts.index = device_index(options, count);
  if (options.sharing == DeviceSharing::allow) {
    facts.sharing_ranks = (options.local_size + count - 1) / count;
  }
  EPS_CUDA(cudaSetDevice(facts.index));
  cudaDeviceProp properties{};
  EPS_CUDA(cudaGetDeviceProperties(&properties, facts.index));
  std::size_t free_bytes = 0, total_bytes = 0;
  EPS_CUDA(cudaMemGetInfo(&free_bytes, &total_bytes));
  facts.name = properties.name;
  facts.uuid = uuid_text(properties.uuid);
  facts.memory_bytes = static_cast<std::int64_t>(total_bytes);
  facts.free_bytes = static_cast<std::int64_t>(free_bytes);
  facts.cache_bytes = properties.l2CacheSize;
  facts.compute_capability = 10 * properties.major + properties.minor;
  facts.num_multiprocessors = properties.multiProcessorCount;
  EPS_CUDA(cudaDriverGetVersion(&facts.driver_version));
  EPS_CUDA(cudaRuntimeGetVersion(&facts.runtime_version));
  return facts;
}

int current_compute_capability() {
  int device = 0, major = 0, minor = 0;
  EPS_CUDA(cudaGetDevice(&device));
  EPS_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  EPS_CUDA(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  return 10 * major + minor;
}

}  // namespace epsweep::cuda
