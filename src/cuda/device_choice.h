// Which device a rank uses, and what it is.
#pragma once

#include <cstdint>
#include <string>

#include "device/backend.h"

namespace epsweep::cuda {

struct DeviceFacts {
  int index = 0;
  std::string name;  // "NVIDIA H200"
  std::string uuid;  // "GPU-..." as nvidia-smi shows it: tells devices of a host apart
  std::int64_t memory_bytes = 0, free_bytes = 0, cache_bytes = 0;
  int sharing_ranks = 1;       // of this host on the device, as far as was asked for
  int compute_capability = 0;  // 90 for sm_90
  int num_multiprocessors = 0;
  int driver_version = 0, runtime_version = 0;  // 13000 for CUDA 13.0
};

// Number of the device a rank uses of `visible` ones: the chosen one, else one for each rank of the
// host, else the only one (launchers that bind ranks show each its own). With fewer devices than
// ranks they are shared in turn where that is allowed. Throws ConfigError naming both numbers.
int device_index(const BackendOptions& options, int visible);

// Makes the rank's device current. Throws ConfigError in one line where there is no driver, an
// older one than the program needs, no device, or none for this rank.
DeviceFacts choose_device(const BackendOptions& options);

// Of the current device; 90 for 9.0.
int current_compute_capability();

}  // namespace epsweep::cuda
