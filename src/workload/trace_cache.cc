#include "workload/trace_cache.h"

#include <algorithm>

#include <fmt/format.h>

namespace epsweep {
namespace {

std::int64_t bytes_of(const Trace& trace) {
  return static_cast<std::int64_t>(trace.experts.size() * sizeof(trace.experts.front()));
}

std::string key_of(const SweepPoint& point, int layer) {
  return fmt::format("{} layer={}", trace_key(point), layer);
}

}  // namespace

const Trace& TraceCache::of(const SweepPoint& point, int layer) {
  std::string key = key_of(point, layer);
  const auto found = std::ranges::find(kept_, key, &Kept::key);
  if (found != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, found);
    return kept_.front().trace;
  }
  kept_.push_front({.key = std::move(key), .trace = draw_trace(point, layer)});
  bytes_ += bytes_of(kept_.front().trace);
  while (bytes_ > max_bytes_ && kept_.size() > 1) {
    bytes_ -= bytes_of(kept_.back().trace);
    kept_.pop_back();
  }
  return kept_.front().trace;
}

const std::vector<std::int64_t>& TraceCache::rows_of(const SweepPoint& point, int layer) {
  std::string key = key_of(point, layer);
  const auto found = rows_.find(key);
  if (found != rows_.end()) return found->second;
  return rows_.emplace(std::move(key), rows_per_expert(of(point, layer))).first->second;
}

}  // namespace epsweep
