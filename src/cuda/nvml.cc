#include "cuda/nvml.h"

#include <dlfcn.h>

namespace epsweep::cuda {
namespace {

// NVML's interface as its manual gives it; its header is not part of the toolkit's compiler.
constexpr int kSuccess = 0;
constexpr int kSmClock = 1, kMemoryClock = 2, kGpuSensor = 0;

template <typename Function>
Function function(void* library, const char* name) {
  return library == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(library, name));
}

// A reading of type unsigned; absent where the driver has no such function or no such reading.
template <typename... Arguments>
std::optional<double> reading(void* library, void* device, const char* name, double unit,
                              Arguments... arguments) {
  using Function = int (*)(void*, Arguments..., unsigned*);
  const auto call = function<Function>(library, name);
  unsigned value = 0;
  if (call == nullptr || call(device, arguments..., &value) != kSuccess) return std::nullopt;
  return value * unit;
}

}  // namespace

Nvml::Nvml(const std::string& uuid) : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW)) {
  const auto init = function<int (*)()>(library_, "nvmlInit_v2");
  const auto find = function<int (*)(const char*, void**)>(library_, "nvmlDeviceGetHandleByUUID");
  if (init == nullptr || find == nullptr || init() != kSuccess) return;
  if (find(uuid.c_str(), &device_) != kSuccess) device_ = nullptr;
}

DeviceCondition Nvml::condition() const {
  if (device_ == nullptr) return {};
  DeviceCondition condition{
      .clock_mhz = reading(library_, device_, "nvmlDeviceGetClockInfo", 1, kSmClock),
      .memory_clock_mhz = reading(library_, device_, "nvmlDeviceGetClockInfo", 1, kMemoryClock),
      .power_w = reading(library_, device_, "nvmlDeviceGetPowerUsage", 1e-3),
      .temperature_c = reading(library_, device_, "nvmlDeviceGetTemperature", 1, kGpuSensor),
      .clock_limits = std::nullopt};
  // The older name still works; drivers before 535 have no other.
  const auto reasons = function<int (*)(void*, unsigned long long*)>(
      library_, "nvmlDeviceGetCurrentClocksThrottleReasons");
  unsigned long long bits = 0;
  if (reasons != nullptr && reasons(device_, &bits) == kSuccess) {
    condition.clock_limits = clock_limit_names(bits);
  }
  return condition;
}

std::vector<std::string> clock_limit_names(unsigned long long reasons) {
  static const std::vector<std::string> kNames = {"gpu_idle",
                                                  "applications_clocks_setting",
                                                  "sw_power_cap",
                                                  "hw_slowdown",
                                                  "sync_boost",
                                                  "sw_thermal_slowdown",
                                                  "hw_thermal_slowdown",
                                                  "hw_power_brake_slowdown",
                                                  "display_clock_setting"};
  std::vector<std::string> names;
  for (std::size_t bit = 1; bit < 64; ++bit) {
    if ((reasons >> bit & 1) == 0) continue;
    names.push_back(bit < kNames.size() ? kNames[bit] : "bit " + std::to_string(bit));
  }
  return names;
}

}  // namespace epsweep::cuda
