#include "report/rank_table.h"

#include <algorithm>
#include <numeric>
#include <sstream>

#include <fmt/format.h>

#include "base/error.h"
#include "base/statistics.h"
#include "report/point_record.h"
#include "report/record_access.h"
#include "report/record_layout.h"
#include "report/sparkline.h"
#include "report/text_table.h"

namespace epsweep {
namespace {

constexpr std::size_t kBlocksOfLine = 40;

// A list of one number for every rank; absent where the record has none.
std::vector<std::optional<double>> numbers_of(const Json& record, const char* path,
                                              std::size_t num_ranks) {
  std::vector<std::optional<double>> numbers(num_ranks);
  const Json* list = find_value(record, path);
  if (list == nullptr || !list->is_array() || list->size() != num_ranks) return numbers;
  for (std::size_t row = 0; row < num_ranks; ++row) {
    if ((*list)[row].is_number()) numbers[row] = (*list)[row].get<double>();
  }
  return numbers;
}

// A rank's own stages, added up, per layer.
std::vector<double> own_samples_us(const TimingTable& times, int row) {
  std::vector<double> samples;
  for (int i = 0; i < times.num_iterations(); ++i) {
    double sum_s = 0;
    for (int l = 0; l < times.num_layers(); ++l) {
      for (int s = 0; s < kNumStages; ++s) sum_s += times.wall_s(row, i, l, static_cast<Stage>(s));
    }
    samples.push_back(sum_s / times.num_layers() * 1e6);
  }
  return samples;
}

// Received per layer, on average over layers; all groups run the same routing.
std::optional<double> rows_received(const Json& record, int ep_rank) {
  const Json* layers = find_value(record, "rows_per_rank.per_layer");
  if (layers == nullptr || !layers->is_array() || layers->empty()) return std::nullopt;
  double sum = 0;
  for (const Json& layer : *layers) {
    const auto at = static_cast<std::size_t>(ep_rank);
    if (!layer.is_array() || at >= layer.size() || !layer[at].is_number()) return std::nullopt;
    sum += layer[at].get<double>();
  }
  return sum / static_cast<double>(layers->size());
}

std::optional<double> sum_of(const std::optional<double>& a, const std::optional<double>& b) {
  if (!a || !b) return std::nullopt;
  return *a + *b;
}

// What all rows are made of.
struct RankTimes {
  std::vector<std::vector<double>> samples_us;  // [ranks][iterations]
  std::vector<double> p50_us;
  SparkScale scale;
};

RankTimes rank_times(const TimingTable& times) {
  RankTimes ranks;
  std::vector<double> all;
  for (int row = 0; row < times.num_ranks(); ++row) {
    ranks.samples_us.push_back(own_samples_us(times, row));
    const std::vector<double>& own = ranks.samples_us.back();
    ranks.p50_us.push_back(nearest_rank(own, 0.5));
    all.insert(all.end(), own.begin(), own.end());
  }
  ranks.scale = spark_scale(all);
  return ranks;
}

TextTable table_of(const Json& record, const GroupLayout& layout, const std::vector<double>& p50_us,
                   const std::vector<std::size_t>& shown) {
  const std::vector<int> ranks = active_ranks(layout);
  const auto ffn = numbers_of(record, "ffn_p50_us_of_rank", ranks.size());
  const auto dispatch =
      numbers_of(record, "stages.dispatch.exchange.wait_p50_us_of_rank", ranks.size());
  const auto combine =
      numbers_of(record, "stages.combine.exchange.wait_p50_us_of_rank", ranks.size());
  const Json* slowest = find_value(record, "all_stages.slowest_rank");
  TextTable table{
      .columns = {{""}, {"rank"}, {"group"}, {"EP rank"}, {"stages"}, {"ffn"}, {"rows"}, {"wait"}},
      .rows = {}};
  for (const std::size_t row : shown) {
    const auto rank = static_cast<std::size_t>(ranks[row]);
    const int ep_rank = layout.ep_rank_of_rank[rank];
    const bool is_slowest = slowest != nullptr && *slowest == ranks[row];
    table.rows.push_back({is_slowest ? ">" : "", std::to_string(rank),
                          std::to_string(layout.group_of_rank[rank]), std::to_string(ep_rank),
                          short_number(p50_us[row]), short_number(ffn[row]),
                          short_number(rows_received(record, ep_rank)),
                          short_number(sum_of(dispatch[row], combine[row]))});
  }
  return table;
}

// The lines of a rendered table with a text at the end of each row; its last column reaches the end
// of the line.
std::string with_ends(const std::string& table, const std::string& header,
                      const std::vector<std::string>& ends) {
  std::istringstream lines(table);
  std::string text, line;
  for (std::size_t i = 0; std::getline(lines, line); ++i) {
    text += line;
    if (i == 0) text += "  " + header;
    if (i == 1) text += "  " + std::string(header.size(), '-');
    if (i >= 2) text += "  " + ends[i - 2];
    text += "\n";
  }
  return text;
}

}  // namespace

std::vector<std::size_t> rows_to_show(const std::vector<double>& times, RankRows rows) {
  std::vector<std::size_t> order(times.size());
  std::iota(order.begin(), order.end(), 0);
  if (rows == RankRows::all || times.size() <= kMostRows) return order;
  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return times[a] > times[b]; });
  order.erase(order.begin() + kSlowestRows, order.end() - kFastestRows);
  return order;
}

std::string rank_table(const Json& record, const TimingTable& times, RankRows rows,
                       const std::string& where) {
  if (find_value(record, "all_stages") == nullptr) return "";
  const GroupLayout layout = layout_of_record(record, where);
  const std::size_t num_ranks = active_ranks(layout).size();
  if (static_cast<std::size_t>(times.num_ranks()) != num_ranks) {
    throw ConfigError(fmt::format("{}: times of {} ranks, the record is of {}", where,
                                  times.num_ranks(), num_ranks));
  }
  const RankTimes ranks = rank_times(times);
  const std::vector<std::size_t> shown = rows_to_show(ranks.p50_us, rows);
  std::vector<std::string> lines;
  for (const std::size_t row : shown) {
    lines.push_back(sparkline(ranks.samples_us[row], ranks.scale, kBlocksOfLine));
  }
  std::string text = fmt::format(
      "Ranks, regime aligned\n(p50 us per layer of the rank's own stages, of expert_ffn, and of "
      "waiting in dispatch and combine for the last rank to come in; rows received per layer;\n> "
      "slowest rank; iterations: own stages, \u2581 {} us to \u2588 {} us and more, 95 % of all "
      "are "
      "below)\n{}",
      short_number(ranks.scale.low), short_number(ranks.scale.high),
      with_ends(render(table_of(record, layout, ranks.p50_us, shown)), "iterations", lines));
  if (shown.size() == num_ranks) return text;
  return text + fmt::format(
                    "{} of {} ranks, between the {} slowest and the {} fastest, are left "
                    "out: --ranks all\n",
                    num_ranks - shown.size(), num_ranks, kSlowestRows, kFastestRows);
}

}  // namespace epsweep
