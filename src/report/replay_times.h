// The times of a replayed point in the tables that runs are summarised from.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "report/arrival.h"
#include "report/replay_file.h"
#include "report/timing_table.h"

namespace epsweep {

struct ReplayTables {
  // One layer for every iteration; CPU times and stages the file does not have are zero. A bare
  // exchange lies in the place of `dispatch`, a whole layer in that of `expert_ffn`.
  std::optional<TimingTable> stages, layer;
  TableRows rows;
  // Why begins and ends of different ranks cannot be compared; no entry where they can. Such times
  // begin at 0, others count from the first row's first begin of their stage.
  std::map<std::string, std::string> no_order;
};

Stage table_place(const std::string& stage);
ReplayTables replay_tables(const ReplayPoint& point);

// What all ranks of the point sent in an iteration, over the time from the first begin to the last
// end of it: ranks that take turns do not add up their rates.
struct AggregateRate {
  std::int64_t bytes = 0;
  std::string letter;
  std::optional<double> window_p50_s, gb_per_s;
  std::string why_null;  // where gb_per_s is absent
};
// Absent where the file has no bytes of the stage.
std::optional<AggregateRate> aggregate_rate(const ReplayPoint& point, const ReplayTables& tables,
                                            const std::string& stage);

}  // namespace epsweep
