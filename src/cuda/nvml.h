// Clocks, power and temperature from NVML, which is part of the driver and loaded where it is
// there.
#pragma once

#include <string>

#include "device/backend.h"

namespace epsweep::cuda {

class Nvml {
 public:
  // Of the device with that UUID ("GPU-..."); everything is absent where the library is.
  explicit Nvml(const std::string& uuid);
  DeviceCondition condition() const;

 private:
  void* library_ = nullptr;  // stays loaded: unloading it while CUDA runs is asking for trouble
  void* device_ = nullptr;
};

// Names of NVML's reasons for a lower clock (nvmlClocksEventReasons) but idleness; unknown bits as
// "bit 12".
std::vector<std::string> clock_limit_names(unsigned long long reasons);

}  // namespace epsweep::cuda
