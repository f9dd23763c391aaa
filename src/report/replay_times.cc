#include "report/replay_times.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"
#include "base/statistics.h"

namespace epsweep {
namespace {

// The two worst may be wrong in opposite directions.
double order_bound_s(const ReplayPoint& point) {
  double most_s = 0, second_s = 0;
  for (const ReplayRank& rank : point.ranks) {
    const double bound_s = rank.clock ? rank.clock->bound_s : 0;
    second_s = std::max(second_s, std::min(most_s, bound_s));
    most_s = std::max(most_s, bound_s);
  }
  return most_s + second_s;
}

std::string why_no_order(const ReplayPoint& point, const std::string& stage) {
  if (point.ranks.front().stages.at(stage).begin_s.empty()) {
    return "durations only: without times of entry waiting and moving cannot be told apart";
  }
  if (point.ranks.size() == 1) return "";
  for (const ReplayRank& rank : point.ranks) {
    if (!rank.clock) return fmt::format("no common clock: rank {} has none", rank.rank);
  }
  return "";
}

// Where times of all ranks begin to count: numbers near 0 keep their digits.
double epoch_s(const ReplayPoint& point, const std::string& stage) {
  const ReplayRank& rank = point.ranks.front();
  return rank.clock.value_or(ReplayClock{}).common_s(rank.stages.at(stage).begin_s.front());
}

enum class Axis { common, none };

void put_stage(const ReplayPoint& point, const std::string& stage, Axis axis, TimingTable& table) {
  const Stage place = table_place(stage);
  const bool ordered = axis == Axis::common;
  const double from_s = ordered ? epoch_s(point, stage) : 0;
  for (int row = 0; row < table.num_ranks(); ++row) {
    const ReplayRank& rank = point.ranks[static_cast<std::size_t>(row)];
    const ReplayTimes& times = rank.stages.at(stage);
    for (int i = 0; i < table.num_iterations(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      double begin_s = 0, end_s = times.duration_s[at];
      if (ordered) {
        const ReplayClock clock = rank.clock.value_or(ReplayClock{});
        begin_s = clock.common_s(times.begin_s[at]) - from_s;
        end_s = clock.common_s(times.end_s[at]) - from_s;
      }
      table.at(row, i, 0, place, Measure::begin_s) = begin_s;
      table.at(row, i, 0, place, Measure::end_s) = end_s;
    }
  }
}

}  // namespace

Stage table_place(const std::string& stage) {
  if (stage == kBareExchange) return Stage::dispatch;
  if (stage == kWholeLayer) return Stage::expert_ffn;
  const auto found = std::ranges::find(kStageNames, stage);
  EPS_EXPECT(found != kStageNames.end(), "a stage without a name");
  return static_cast<Stage>(found - kStageNames.begin());
}

ReplayTables replay_tables(const ReplayPoint& point) {
  const auto num_ranks = static_cast<int>(point.ranks.size());
  const auto num_iterations = static_cast<int>(point.num_iterations());
  ReplayTables tables;
  for (const ReplayRank& rank : point.ranks) tables.rows.group_of_row.push_back(rank.group);
  tables.rows.order_bound_s = order_bound_s(point);
  for (const std::string& stage : point.stages) {
    const std::string reason = why_no_order(point, stage);
    if (!reason.empty()) tables.no_order[stage] = reason;
  }
  for (const std::string& stage : point.stages) {
    std::optional<TimingTable>& table = stage == kWholeLayer ? tables.layer : tables.stages;
    if (!table) table.emplace(num_ranks, num_iterations, 1);
    put_stage(point, stage, tables.no_order.contains(stage) ? Axis::none : Axis::common, *table);
  }
  return tables;
}

std::optional<AggregateRate> aggregate_rate(const ReplayPoint& point, const ReplayTables& tables,
                                            const std::string& stage) {
  if (!point.ranks.front().bytes.contains(stage)) return std::nullopt;
  AggregateRate rate;
  rate.letter = point.ranks.front().bytes.at(stage).letter;
  for (const ReplayRank& rank : point.ranks) rate.bytes += rank.bytes.at(stage).bytes;
  if (const auto reason = tables.no_order.find(stage); reason != tables.no_order.end()) {
    rate.why_null = reason->second;
    return rate;
  }
  const TimingTable& table = *tables.stages;
  const Stage place = table_place(stage);
  std::vector<double> windows_s;
  for (int i = 0; i < table.num_iterations(); ++i) {
    double first_s = std::numeric_limits<double>::infinity(), last_s = -first_s;
    for (int row = 0; row < table.num_ranks(); ++row) {
      first_s = std::min(first_s, table.at(row, i, 0, place, Measure::begin_s));
      last_s = std::max(last_s, table.at(row, i, 0, place, Measure::end_s));
    }
    windows_s.push_back(last_s - first_s);
  }
  rate.window_p50_s = nearest_rank(windows_s, 0.5);
  const double bound_s = tables.rows.order_bound_s;
  if (*rate.window_p50_s <= 0) {
    rate.why_null = "zero-length window: all ranks begin and end at one moment";
  } else if (*rate.window_p50_s <= bound_s) {
    rate.why_null = fmt::format("a window of {:.3f} us is within the clocks' bound of {:.3f} us",
                                *rate.window_p50_s * 1e6, bound_s * 1e6);
  } else {
    rate.gb_per_s = static_cast<double>(rate.bytes) / 1e9 / *rate.window_p50_s;
  }
  return rate;
}

}  // namespace epsweep
