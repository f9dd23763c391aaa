#include "report/arrival.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace epsweep {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What is known of one exchange after some of its ranks.
struct Open {
  double first_in_s = kInfinity, last_in_s = -kInfinity, last_out_s = -kInfinity;
  int last_row = 0;

  void add(int row, double entered_s, double left_s) {
    first_in_s = std::min(first_in_s, entered_s);
    last_out_s = std::max(last_out_s, left_s);
    if (entered_s <= last_in_s) return;
    last_in_s = entered_s;
    last_row = row;
  }
};

// One for every (iteration, layer, group), in that order.
class OpenExchanges {
 public:
  OpenExchanges(const TimingTable& table, const TableRows& rows)
      : num_layers_(static_cast<std::size_t>(table.num_layers())),
        num_groups_(static_cast<std::size_t>(std::ranges::max(rows.group_of_row)) + 1),
        cells_(static_cast<std::size_t>(table.num_iterations()) * num_layers_ * num_groups_) {}

  std::size_t num_groups() const { return num_groups_; }
  std::span<const Open> all() const { return cells_; }
  Open& at(int iteration, int layer, int group) {
    return cells_[(static_cast<std::size_t>(iteration) * num_layers_ +
                   static_cast<std::size_t>(layer)) *
                      num_groups_ +
                  static_cast<std::size_t>(group)];
  }

 private:
  std::size_t num_layers_, num_groups_;
  std::vector<Open> cells_;
};

template <typename Visit>
void for_each_cell(const TimingTable& table, Stage stage, const TableRows& rows,
                   const Visit& visit) {
  for (int row = 0; row < table.num_ranks(); ++row) {
    const int group = rows.group_of_row[static_cast<std::size_t>(row)];
    for (int i = 0; i < table.num_iterations(); ++i) {
      for (int l = 0; l < table.num_layers(); ++l) {
        visit(row, i, l, group, table.at(row, i, l, stage, Measure::begin_s));
      }
    }
  }
}

// Means over layers of maxima over groups.
template <typename Value>
TimeSummary over_iterations(std::span<const Open> cells, std::size_t num_groups,
                            std::size_t num_layers, const Value& value) {
  std::vector<double> samples;
  for (std::size_t begin = 0; begin < cells.size(); begin += num_groups * num_layers) {
    double sum = 0;
    for (std::size_t l = 0; l < num_layers; ++l) {
      double most = -kInfinity;
      for (const Open& cell : cells.subspan(begin + l * num_groups, num_groups)) {
        most = std::max(most, value(cell));
      }
      sum += most;
    }
    samples.push_back(sum / static_cast<double>(num_layers));
  }
  return summarize_times(samples);
}

double skew_s(const Open& exchange) {
  return exchange.last_in_s - exchange.first_in_s;
}

// Groups do not wait for each other, so in each (iteration, layer) the one that waited longest says
// who was last, as it says how long.
void name_last_in(const OpenExchanges& exchanges, const TableRows& rows, ExchangeSummary& summary) {
  std::vector<std::int64_t> times_last(rows.group_of_row.size(), 0);
  const std::span<const Open> cells = exchanges.all();
  for (std::size_t begin = 0; begin < cells.size(); begin += exchanges.num_groups()) {
    const auto longest =
        std::ranges::max_element(cells.subspan(begin, exchanges.num_groups()), {}, skew_s);
    if (skew_s(*longest) <= rows.order_bound_s) continue;
    ++times_last[static_cast<std::size_t>(longest->last_row)];
  }
  const auto most_often = std::ranges::max_element(times_last);
  summary.last_in_row = static_cast<int>(most_often - times_last.begin());
  summary.last_in_share =
      static_cast<double>(*most_often) / static_cast<double>(cells.size() / exchanges.num_groups());
}

}  // namespace

TableRows one_group(int num_rows) {
  return {.group_of_row = std::vector<int>(static_cast<std::size_t>(num_rows), 0),
          .order_bound_s = 0};
}

Arrival arrival_of(std::span<const double> entered_s, std::span<const double> left_s) {
  EPS_EXPECT(!entered_s.empty() && entered_s.size() == left_s.size(),
             "an exchange of no ranks, or ranks that never left it");
  Open open;
  for (std::size_t row = 0; row < entered_s.size(); ++row) {
    open.add(static_cast<int>(row), entered_s[row], left_s[row]);
  }
  return {.skew_in_s = open.last_in_s - open.first_in_s,
          .transfer_s = open.last_out_s - open.last_in_s,
          .last_in = open.last_row};
}

ExchangeSummary summarize_exchange(const TimingTable& table, Stage stage, const TableRows& rows) {
  EPS_EXPECT(rows.group_of_row.size() == static_cast<std::size_t>(table.num_ranks()),
             "rows of a table without their groups");
  OpenExchanges exchanges(table, rows);
  for_each_cell(table, stage, rows, [&](int row, int i, int l, int group, double entered_s) {
    exchanges.at(i, l, group).add(row, entered_s, table.at(row, i, l, stage, Measure::end_s));
  });
  const auto num_layers = static_cast<std::size_t>(table.num_layers());
  const auto summary_of = [&](const auto& value) {
    return over_iterations(exchanges.all(), exchanges.num_groups(), num_layers, value);
  };
  ExchangeSummary summary;
  summary.skew_in_s = summary_of(skew_s);
  summary.transfer_s = summary_of([](const Open& o) { return o.last_out_s - o.last_in_s; });
  if (summary.skew_in_s.p50.value_or(0) > rows.order_bound_s) {
    name_last_in(exchanges, rows, summary);
  }

  const auto num_iterations = static_cast<std::size_t>(table.num_iterations());
  std::vector<double> waits(num_iterations, 0);
  int current = 0;
  const auto finish_row = [&] {
    summary.wait_p50_s_of_row.push_back(nearest_rank(waits, 0.5));
    std::ranges::fill(waits, 0);
  };
  for_each_cell(table, stage, rows, [&](int row, int i, int l, int group, double entered_s) {
    if (row != current) finish_row();
    current = row;
    waits[static_cast<std::size_t>(i)] +=
        (exchanges.at(i, l, group).last_in_s - entered_s) / static_cast<double>(num_layers);
  });
  finish_row();
  return summary;
}

}  // namespace epsweep
