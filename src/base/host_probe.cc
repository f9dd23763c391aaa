#include "base/host_probe.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>

#include <sched.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

namespace epsweep {
namespace {

double clock_s(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

double monotonic_s() {
  return clock_s(CLOCK_MONOTONIC);
}

double process_cpu_s() {
  return clock_s(CLOCK_PROCESS_CPUTIME_ID);
}

std::int64_t involuntary_switches() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

std::optional<double> host_busy_cpu_s() {
  std::ifstream stat("/proc/stat");
  std::string label;
  double user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0;
  if (!(stat >> label >> user >> nice >> system >> idle >> iowait >> irq >> softirq >> steal)) {
    return std::nullopt;
  }
  return (user + nice + system + irq + softirq + steal) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

int num_online_cores() {
  return static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
}

std::vector<int> allowed_cores() {
  constexpr int kMaxCores = 8192;  // cpu_set_t alone ends at 1024
  std::vector<cpu_set_t> mask(CPU_ALLOC_SIZE(kMaxCores) / sizeof(cpu_set_t));
  const std::size_t bytes = mask.size() * sizeof(cpu_set_t);
  std::vector<int> cores;
  if (sched_getaffinity(0, bytes, mask.data()) == 0) {
    for (int core = 0; core < kMaxCores; ++core) {
      if (CPU_ISSET_S(static_cast<std::size_t>(core), bytes, mask.data())) cores.push_back(core);
    }
  }
  if (cores.empty()) {
    cores.resize(static_cast<std::size_t>(num_online_cores()));
    std::iota(cores.begin(), cores.end(), 0);
  }
  return cores;
}

int num_allowed_cores() {
  return static_cast<int>(allowed_cores().size());
}

// The kernel links a core's directory to those of its nodes.
std::vector<int> numa_nodes_of(const std::vector<int>& cores) {
  constexpr int kMaxNodes = 64;
  std::vector<int> nodes;
  std::error_code ignored;
  for (int node = 0; node < kMaxNodes; ++node) {
    const std::string name = "/node" + std::to_string(node);
    if (!std::filesystem::exists("/sys/devices/system/node" + name, ignored)) continue;
    for (const int core : cores) {
      const std::string cpu = "/sys/devices/system/cpu/cpu" + std::to_string(core);
      if (!std::filesystem::exists(cpu + name, ignored)) continue;
      nodes.push_back(node);
      break;
    }
  }
  return nodes;
}

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "unknown";
}

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) == 0) {
      const auto colon = line.find(':');
      return colon == std::string::npos ? line : line.substr(colon + 2);
    }
  }
  return "unknown";
}

std::int64_t last_level_cache_bytes() {
  std::int64_t largest = 0;
  for (int index = 0; index < 8; ++index) {
    std::ifstream size("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) +
                       "/size");
    std::int64_t value = 0;
    char unit = ' ';
    if (!(size >> value)) continue;
    size >> unit;
    const std::int64_t factor = unit == 'K' ? 1024 : unit == 'M' ? 1024 * 1024 : 1;
    largest = std::max(largest, value * factor);
  }
  return largest;
}

std::int64_t memory_total_bytes() {
  struct sysinfo info {};
  return sysinfo(&info) == 0 ? static_cast<std::int64_t>(info.totalram) * info.mem_unit : 0;
}

std::int64_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace epsweep
