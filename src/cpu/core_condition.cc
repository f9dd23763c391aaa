#include "cpu/core_condition.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

namespace epsweep {
namespace {

constexpr std::size_t kMostCores = 16;

// 0 where it can no longer be read.
std::int64_t number_in(const std::string& path) {
  std::ifstream file(path);
  std::int64_t value = 0;
  return file >> value ? value : 0;
}

std::int64_t sum_of(const std::vector<std::string>& files) {
  std::int64_t sum = 0;
  for (const std::string& file : files) sum += number_in(file);
  return sum;
}

void add_if_there(const std::string& path, std::vector<std::string>& files) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) files.push_back(path);
}

}  // namespace

CoreCondition::CoreCondition(const std::string& cpus_dir, const std::vector<int>& cores) {
  for (std::size_t i = 0; i < std::min(cores.size(), kMostCores); ++i) {
    const std::string cpu = fmt::format("{}/cpu{}/", cpus_dir, cores[i]);
    add_if_there(cpu + "cpufreq/scaling_cur_freq", clock_files_);
    add_if_there(cpu + "thermal_throttle/core_throttle_count", throttle_files_);
  }
  throttles_ = sum_of(throttle_files_);
}

DeviceCondition CoreCondition::read() {
  DeviceCondition condition;
  if (!clock_files_.empty()) {
    const double khz =
        static_cast<double>(sum_of(clock_files_)) / static_cast<double>(clock_files_.size());
    condition.clock_mhz = khz / 1e3;
  }
  if (!throttle_files_.empty()) {
    const std::int64_t now = sum_of(throttle_files_);
    condition.clock_limits.emplace();
    if (now > throttles_) condition.clock_limits->push_back("core throttled");
    throttles_ = now;
  }
  return condition;
}

}  // namespace epsweep
