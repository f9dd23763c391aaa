// What all ranks found out about a point, brought together on rank 0.
#pragma once

#include <optional>
#include <string>

#include "app/gathered_times.h"
#include "app/rank_engine.h"
#include "base/json.h"
#include "report/arrival.h"
#include "report/chain_table.h"
#include "report/pass_summary.h"
#include "report/point_record.h"
#include "report/timing_table.h"

namespace epsweep {

struct GatheredPoint {
  // Absent unless every rank measured.
  std::optional<GatheredTimes> times;
  int stop_signal = 0;
  CheckResult check;
  std::string check_problem;  // of the first rank that has one
  FfnGemms gemms;             // of group 0
  HarnessSeconds harness;
  ClockReport clock;
  std::optional<double> foreign_load;
  // By working rank, around the timed iterations; null where no device tells.
  Json device_condition_before = Json::array(), device_condition = Json::array();
  Json counters = Json::array();  // of working ranks; null where nobody asked
};

// Collective over the world; the value is meaningful on rank 0.
GatheredPoint gather_point(const Comm& world, const HostMap& hosts, const RankPoint& rank_point);

}  // namespace epsweep
