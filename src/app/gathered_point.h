// What all ranks found out about a point, brought together on rank 0.
#pragma once

#include <optional>
#include <string>

#include "app/rank_engine.h"
#include "base/json.h"
#include "report/point_record.h"
#include "report/timing_table.h"

namespace epsweep {

struct GatheredPoint {
  // Rows: active_ranks(). Begin and end count from rank 0's first begin, on the common axis: rank
  // 0's clock, other clocks moved onto it within the bounds of `clock`.
  // Absent unless every rank measured.
  std::optional<TimingTable> times;
  int stop_signal = 0;
  CheckResult check;
  std::string check_problem;  // of the first rank that has one
  FfnGemms gemms;             // of group 0
  HarnessSeconds harness;
  ClockReport clock;
  std::optional<double> foreign_load;
  Json device_condition = Json::array();  // by working rank; null where no device tells
};

// Collective over the world; the value is meaningful on rank 0.
GatheredPoint gather_point(const Comm& world, const HostMap& hosts, const RankPoint& rank_point);

}  // namespace epsweep
