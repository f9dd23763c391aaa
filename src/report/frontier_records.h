// Frontiers from records of points with limits.
#pragma once

#include <string>
#include <vector>

#include "plan/limits.h"
#include "report/frontier.h"
#include "report/result_file.h"
#include "report/table_columns.h"

namespace epsweep {

// Curves that are equal in everything but EP size and load; so never of two concurrency modes.
struct Frontier {
  TableRow example;  // one of its rows, for what they have in common
  Limits limits;
  std::vector<FrontierCurve> curves;  // by EP size, ascending
};

// Of rows in any order; those without limits, loads listed rank by rank, and counterfactuals are
// left out. Repeats
// of a curve are its repeats in each run directory. A repeat's second attempt at a load counts
// like its first: the lower TPOT of two is their nearest-rank median.
std::vector<Frontier> frontiers_of(const std::vector<TableRow>& rows);

// Each curve against that of the smallest EP size.
std::vector<FrontierGain> gains_of(const Frontier& frontier);

// The section of a report; empty where no row has limits. `varying` axes tell frontiers apart.
std::string frontier_text(const std::vector<TableRow>& rows, const std::vector<Axis>& varying);

// A list of frontiers, runs of one identity (run.json) as repeats of each other.
Json frontiers_json(const std::vector<RunData>& runs);

}  // namespace epsweep
