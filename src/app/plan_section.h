// The parts of a plan: each is a table of all points, and keys of their JSON.
#pragma once

#include <string>
#include <vector>

#include "app/planned_point.h"
#include "base/json.h"
#include "report/text_table.h"

namespace epsweep {

struct PlanColumn {
  TextColumn head;
  std::string (*text)(const SweepPoint& point, const PlannedPoint& planned) = nullptr;
};

struct PlanSection {
  std::string title;
  std::string legend;
  // Whether the experiment says anything that the section is about.
  bool (*applies)(const SweepSpec& spec, const LaunchLimits& limits) = nullptr;
  std::vector<PlanColumn> columns;
  void (*put_json)(const SweepPoint& point, const PlannedPoint& planned, Json& json) = nullptr;
};

// In the order of the output. The first one lists infeasible points with their reason in its last
// column; the others leave them out.
std::vector<PlanSection> plan_sections();

PlanSection rows_section();
PlanSection placement_section();
PlanSection bytes_section();
PlanSection memory_section();
PlanSection serving_section();
PlanSection skew_section();

// One number where all ranks have it: "8"; "13..12" or the vector where they differ.
std::string range_text(const std::vector<std::int64_t>& values);
Json per_rank_json(const std::vector<std::int64_t>& values);

}  // namespace epsweep
