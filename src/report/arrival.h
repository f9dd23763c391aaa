// Waiting and moving told apart in an exchange that all ranks of a group take part in.
#pragma once

#include <span>
#include <vector>

#include "base/stage.h"
#include "base/statistics.h"
#include "report/timing_table.h"

namespace epsweep {

// Whom the rows of a table belong to.
struct TableRows {
  std::vector<int> group_of_row;  // EP group; exchanges are of one group
  // The common axis holds for any two ranks within this many seconds: 0 where they read one clock.
  double order_bound_s = 0;
};
// All rows in one group, on one clock.
TableRows one_group(int num_rows);

// Of one exchange by one group, a = entered and b = left on the common axis:
//   skew_in = max a - min a      wait[r] = max a - a[r]
//   transfer = max b - max a     span = max b - min a
// so span = skew_in + transfer, and b[r] - a[r] <= wait[r] + transfer: a rank that was early is not
// slow, and what moved took no longer than from the last arrival to the last departure.
struct Arrival {
  double skew_in_s = 0, transfer_s = 0;
  int last_in = 0;  // position; the first one on a tie
};
Arrival arrival_of(std::span<const double> entered_s, std::span<const double> left_s);

constexpr bool is_exchange(Stage stage) {
  return stage == Stage::count_exchange || stage == Stage::dispatch || stage == Stage::combine;
}

// The sample of an iteration is the mean over layers of the maximum over groups.
struct ExchangeSummary {
  TimeSummary skew_in_s, transfer_s;
  // Row that came last most often, and in which share of the (iteration, layer)s: of each the last
  // one in the group that waited longest, or nobody where skew is within order_bound_s. Absent
  // where that is so of the median skew.
  std::optional<int> last_in_row;
  double last_in_share = 0;
  std::vector<double> wait_p50_s_of_row;  // its own samples: the mean over layers of its wait
};

ExchangeSummary summarize_exchange(const TimingTable& table, Stage stage, const TableRows& rows);

}  // namespace epsweep
