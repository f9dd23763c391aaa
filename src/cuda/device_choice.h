// Which device a rank uses, and what it is.
#pragma once

#include <cstdint>
#include <string>

namespace epsweep::cuda {

struct DeviceFacts {
  int index = 0;
  std::string name;  // "NVIDIA H200"
  std::string uuid;  // "GPU-..." as nvidia-smi shows it: tells devices of a host apart
  std::int64_t memory_bytes = 0, free_bytes = 0, cache_bytes = 0;
  int compute_capability = 0;  // 90 for sm_90
  int num_multiprocessors = 0;
  int driver_version = 0, runtime_version = 0;  // 13000 for CUDA 13.0
};

// Makes the device current: number `local_rank` of those visible, or the one remaining where local
// ranks are more than devices. Throws ConfigError in one line where there is no driver, an older
// one than the program needs, or no device.
DeviceFacts choose_device(int local_rank);

// Of the current device; 90 for 9.0.
int current_compute_capability();

}  // namespace epsweep::cuda
