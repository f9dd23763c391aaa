// Two runs, or two choices of one, point by point.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/compare_fields.h"
#include "report/compare_match.h"
#include "report/compare_quantities.h"
#include "report/compare_sides.h"

namespace epsweep {

struct CompareRequest {
  std::vector<AxisChoice> a, b;     // which points of each run
  std::vector<std::string> across;  // axes that partners may differ in, beside those chosen by
  std::vector<std::string> allow;   // fields that may differ, see kComparedFields
};

struct ComparedPair {
  MatchedPair match;
  std::vector<QuantityChange> changes;
};

struct Comparison {
  CompareSide a, b;
  std::set<std::string> free;            // axes that partners may differ in
  std::vector<FieldDifference> allowed;  // differences that were asked to be overlooked
  std::vector<FieldDifference> run_differences;
  std::vector<std::string> unknown_axes;  // that one side's records do not have
  std::vector<ComparedPair> pairs;
  std::vector<LonePoint> only_in_a, only_in_b;
};

// Both runs must outlive the result; they may be the same object, which then is compared with
// itself. Throws ConfigError, one line: for names that do not exist, for a side with several points
// for one of the other's, for fields that differ and are not allowed to (all of them in one
// message), and where no point has a partner.
Comparison compare_runs(const RunData& a, const RunData& b, const CompareRequest& request);

// Outcomes of all pairs that changed for the better or the worse.
struct NamedChange {
  const ComparedPair* pair = nullptr;
  const QuantityChange* quantity = nullptr;
};
std::vector<NamedChange> outcomes_with(const Comparison& comparison, Change change);

// What a regression beyond the threshold counts for where repeats are too few to show it.
enum class FewRepeats { allow, fail };
inline const std::vector<std::string> kFewRepeatsNames = {"allow", "fail"};

// "regression:5%": B is worse by more than 5 % of A in an outcome.
struct RegressionLimit {
  double share = 0;
  FewRepeats few_repeats = FewRepeats::allow;
};
// Throws ConfigError.
RegressionLimit parse_regression_limit(const std::string& text, const std::string& few_repeats);

struct RegressionCheck {
  RegressionLimit limit;
  int shown = 0;    // outcomes beyond the limit that repeats show
  int too_few = 0;  // beyond it, with too few repeats to say so
  bool failed() const {
    return shown > 0 || (too_few > 0 && limit.few_repeats == FewRepeats::fail);
  }
};
RegressionCheck check_regressions(const Comparison& comparison, const RegressionLimit& limit);

}  // namespace epsweep
