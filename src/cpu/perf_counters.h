// Counts that Linux keeps for a process: perf_event_open(2).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device/backend.h"

namespace epsweep {

struct PerfEvent {
  std::uint32_t type = 0;  // PERF_TYPE_...
  std::uint64_t config = 0;
};

// Of the thread that made it, in user mode, and of all threads it starts from then on; so it is
// made before any pool of threads.
class PerfCounters {
 public:
  explicit PerfCounters(const std::vector<PerfEvent>& events);
  PerfCounters(const PerfCounters&) = delete;
  PerfCounters& operator=(const PerfCounters&) = delete;
  ~PerfCounters();

  // Since it was made, [events]; where the processor had to share its counters, scaled to the whole
  // time. Absent where the kernel does not allow it, as in most containers and virtual machines:
  // why_not() says so.
  std::vector<std::optional<std::int64_t>> read() const;
  const std::string& why_not() const { return why_not_; }

 private:
  std::vector<int> files_;  // -1: not allowed
  std::string why_not_;
};

// Cycles, instructions and misses of the last cache level.
class HardwareCounters {
 public:
  explicit HardwareCounters(WorkCounting counting);
  WorkCounters read() const;

 private:
  std::optional<PerfCounters> counters_;
};

}  // namespace epsweep
