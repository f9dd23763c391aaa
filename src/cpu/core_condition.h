// How fast a rank's cores may run, as far as Linux tells.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/backend.h"

namespace epsweep {

// Of the first 16 cores given: more would take longer to read than a small iteration takes.
class CoreCondition {
 public:
  // `cpus_dir`: /sys/devices/system/cpu, or a copy of its shape.
  CoreCondition(const std::string& cpus_dir, const std::vector<int>& cores);

  // clock_mhz: mean of cpufreq's scaling_cur_freq. clock_limits: "core throttled" where
  // thermal_throttle/core_throttle_count of a core has grown since the last reading (or the
  // construction); empty where it has not. Each is absent where there are no such files, as in most
  // virtual machines.
  DeviceCondition read();

 private:
  std::vector<std::string> clock_files_, throttle_files_;
  std::int64_t throttles_ = 0;
};

}  // namespace epsweep
