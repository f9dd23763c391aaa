// The JSON of one point: one self-contained line of points.jsonl.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "costs/point_ceilings.h"
#include "costs/point_workload.h"
#include "plan/ladder.h"
#include "plan/plan.h"
#include "report/breakdown.h"
#include "report/clock_report.h"
#include "report/gemm_json.h"
#include "report/summary.h"

namespace epsweep {

// "major.minor" of run.json and of every record. A reader refuses another major.
inline constexpr std::string_view kSchemaVersion = "2.0";

// `measured`, `impossible`, `simulated` and `predicted` carry times and metrics: in every other
// state they are null.
enum class PointState {
  measured,    // timed, and its check passed
  empty,       // ran with zero tokens everywhere: nothing to measure, not to be compared
  skipped,     // could not run: infeasible or does not fit
  stopped,     // a limit ended the sweep before it
  failed,      // ran and went wrong, or its check found wrong values
  unverified,  // its check could not finish
  impossible,  // its check passed, but a rate is above a ceiling: not to be compared
  simulated,   // its times are those of a virtual clock with declared costs: nothing was computed
  predicted,   // the same with costs that another run measured, or a hardware file states
};
inline const std::vector<std::string> kPointStateNames = {"measured",   "empty",     "skipped",
                                                          "stopped",    "failed",    "unverified",
                                                          "impossible", "simulated", "predicted"};
inline const std::string& to_string(PointState state) {
  return kPointStateNames[static_cast<std::size_t>(state)];
}

// Whether a point in this state has times: it was timed and its check passed, or it was simulated.
inline bool has_times(PointState state) {
  return state == PointState::measured || state == PointState::impossible ||
         state == PointState::simulated || state == PointState::predicted;
}

// not_run: of simulated and predicted points, which have no values to look at.
enum class CheckVerdict { passed, failed, unfinished, not_run };
inline const std::vector<std::string> kCheckVerdictNames = {"passed", "failed", "unfinished",
                                                            "not_run"};

struct CheckResult {
  CheckVerdict verdict = CheckVerdict::unfinished;
  std::optional<double> worst_error;  // in the unit of `tolerance`
  double tolerance = 0;
  std::int64_t tokens_checked = 0;
  std::string when;  // "before and after timing"; of not_run why
};

// Of the host with most ranks per core.
struct LoadFacts {
  int ranks = 0;
  int cores = 0;
  int ranks_per_device = 0;  // most on one accelerator; 0 where ranks have cores alone
  // CPU time of other programs while the point was timed, as a share of the host's cores.
  std::optional<double> foreign_load;

  bool oversubscribed() const { return ranks > cores; }
};

// Where the program's own time went, slowest rank.
struct HarnessSeconds {
  double prepare = 0, check = 0, warmup = 0, flush = 0, measured = 0, align = 0;
};

struct PointRecordInput {
  SweepPoint point;
  PointState state = PointState::failed;
  std::string reason;  // required unless measured, simulated or empty
  int world_size = 0;
  GroupLayout layout;
  std::optional<PointWorkload> workload;  // absent where the point never got that far
  std::optional<FfnGemms> gemms;
  std::optional<CheckResult> check;
  // Rows of its timing table are the ranks in groups, in world order. Required for states with
  // times, left out of the record in every other one.
  std::optional<PointSummary> timings;
  std::string timings_file, chains_file;  // relative to the run directory; empty for none
  std::optional<PointCeilings> ceilings;  // absent where none were measured
  std::optional<Breakdown> breakdown;     // of states with times only
  Json prediction = nullptr;  // of predicted points: from what, and the intervals of its times
  LoadFacts load;
  HarnessSeconds harness;
  // Of every working rank's device before the first and right after the last timed iteration, see
  // DeviceCondition; null where no device tells.
  Json device_condition_before = nullptr, device_condition = nullptr;
  Json counters = nullptr;           // of every working rank, see WorkCounters; null: not asked for
  std::optional<ClockReport> clock;  // of points that ran
  std::vector<std::string> warnings;
  std::optional<LadderStop> ladder_stop;  // of the point's series, at this load or a lower one
};

// Rows per expert or per rank, as plans and records show them.
Json row_summary_json(const RowSummary& rows);

// Asked and realised skew by layer; null where the routing states its parameters.
Json realised_skew_json(const std::optional<RealisedSkew>& skew);

// World ranks that are in a group, ascending: the row order of timing tables.
std::vector<int> active_ranks(const GroupLayout& layout);
// Their ranks in their groups.
std::vector<int> ep_ranks_of_rows(const GroupLayout& layout);

// Throws RunError for an input that contradicts itself (a measured point without a passed check).
Json make_point_record(const PointRecordInput& input);

// What the keys of a record mean; once per run, in run.json.
Json record_formulas();

}  // namespace epsweep
