#include "cpu/perf_counters.h"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace epsweep {
namespace {

int open_event(const PerfEvent& event) {
  perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.type = event.type;
  attributes.config = event.config;
  attributes.inherit = 1;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  constexpr int kThisThread = 0, kAnyCpu = -1, kNoGroup = -1;
  return static_cast<int>(syscall(SYS_perf_event_open, &attributes, kThisThread, kAnyCpu, kNoGroup,
                                  PERF_FLAG_FD_CLOEXEC));
}

std::string paranoid_level() {
  std::string text;
  if (std::FILE* file = std::fopen("/proc/sys/kernel/perf_event_paranoid", "r")) {
    char line[16] = {};
    if (std::fgets(line, sizeof(line), file) != nullptr) text = line;
    std::fclose(file);
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.empty() ? "absent" : text;
}

}  // namespace

PerfCounters::PerfCounters(const std::vector<PerfEvent>& events) {
  for (const PerfEvent& event : events) {
    files_.push_back(open_event(event));
    if (files_.back() >= 0 || !why_not_.empty()) continue;
    why_not_ = fmt::format("perf_event_open: {} (kernel.perf_event_paranoid {})",
                           std::strerror(errno), paranoid_level());
  }
}

PerfCounters::~PerfCounters() {
  for (const int file : files_) {
    if (file >= 0) close(file);
  }
}

std::vector<std::optional<std::int64_t>> PerfCounters::read() const {
  struct {
    std::uint64_t count = 0, enabled_ns = 0, running_ns = 0;
  } value;
  std::vector<std::optional<std::int64_t>> counts;
  for (const int file : files_) {
    const bool known =
        file >= 0 && ::read(file, &value, sizeof(value)) == sizeof(value) && value.running_ns > 0;
    if (!known) {
      counts.push_back(std::nullopt);
      continue;
    }
    const double scale =
        static_cast<double>(value.enabled_ns) / static_cast<double>(value.running_ns);
    counts.push_back(static_cast<std::int64_t>(static_cast<double>(value.count) * scale));
  }
  return counts;
}

HardwareCounters::HardwareCounters(WorkCounting counting) {
  if (counting == WorkCounting::off) return;
  counters_.emplace(std::vector<PerfEvent>{{PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
                                           {PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
                                           {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES}});
}

WorkCounters HardwareCounters::read() const {
  if (!counters_) return {};
  const auto counts = counters_->read();
  return {.cycles = counts[0],
          .instructions = counts[1],
          .cache_misses = counts[2],
          .why_not = counters_->why_not()};
}

}  // namespace epsweep
