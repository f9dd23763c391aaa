// Loads of a sweep as ladders: where one load does not fit or is too slow, higher ones are not run.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "plan/sweep_point.h"

namespace epsweep {

enum class StopKind {
  kv_memory,          // the load needs more sequences than the KV room admits
  device_memory,      // the harness's own buffers do not fit
  latency_objective,  // the load was measured, and is slower than asked for
  ladder_end,         // no load met a limit; never of a LadderStop
};
inline const std::vector<std::string> kStopKindNames = {"kv_memory", "device_memory",
                                                        "latency_objective", "ladder_end"};
inline const std::string& to_string(StopKind kind) {
  return kStopKindNames[static_cast<std::size_t>(kind)];
}

struct LadderStop {
  StopKind kind = StopKind::kv_memory;
  std::int64_t at_tokens = 0;  // tokens_global of the load that met the limit
  std::string reason;          // with the numbers

  // "beyond 2048 tokens: kv_memory stopped the series": for higher loads.
  std::string beyond() const;
};
Json ladder_stop_json(const std::optional<LadderStop>& stop);

// Equal for points that differ in their load, and in how often it was tried, alone. Loads listed
// rank by rank have no order, so each is a series of its own.
std::string series_key(const SweepPoint& point);

// The stops met so far; every rank keeps the same.
class LadderStops {
 public:
  // Of several stops of a series the one at the lowest load counts.
  void add(const SweepPoint& point, LadderStop stop);
  // The stop of a lower load of the point's series.
  std::optional<LadderStop> below(const SweepPoint& point) const;

 private:
  std::map<std::string, LadderStop> by_series_;
};

// Of the layer period that the point's objective looks at; p50 where it has none.
Percentile objective_percentile(const SweepPoint& point);
// Absent where the layer period at that percentile is within the point's objective, or it has none.
std::optional<LadderStop> latency_stop(const SweepPoint& point, double layer_us);

}  // namespace epsweep
