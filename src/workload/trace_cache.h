// Traces that several points of a plan share, drawn once.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <vector>

#include "workload/trace.h"

namespace epsweep {

// Keeps the traces used last, up to a number of bytes.
class TraceCache {
 public:
  explicit TraceCache(std::int64_t max_bytes = 256LL << 20) : max_bytes_(max_bytes) {}

  // The trace of one layer of the point. Valid until the next call.
  const Trace& of(const SweepPoint& point, int layer);
  // How many of its tokens picked each expert: [num_experts]. Small, so all are kept, and outlive
  // their trace.
  const std::vector<std::int64_t>& rows_of(const SweepPoint& point, int layer);

 private:
  struct Kept {
    std::string key;
    Trace trace;
  };
  std::list<Kept> kept_;  // used last first
  std::map<std::string, std::vector<std::int64_t>> rows_;
  std::int64_t bytes_ = 0, max_bytes_;
};

}  // namespace epsweep
