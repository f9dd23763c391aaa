#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "report/frontier_records.h"
#include "report/record_access.h"

namespace epsweep {
namespace {

std::string interval_text(const Interval& interval) {
  if (interval.low == interval.high) return "-";
  return fmt::format("{}-{}", short_number(interval.low), short_number(interval.high));
}

// "TPOT = 58 layers x (layer p50 + 100 us); objective 50 ms, 20 tok/s/user"
std::string heading_of(const Limits& limits) {
  std::string text = fmt::format("TPOT = {} layer{} x (layer {} + {} us)", limits.layers,
                                 limits.layers == 1 ? "" : "s", to_string(limits.percentile),
                                 limits.other_layer_us);
  const auto objective_s = limits.objective_s();
  if (!objective_s) return text + "; no latency objective";
  return text + fmt::format("; objective {} ms, {} tok/s/user", short_number(*objective_s * 1e3),
                            short_number(1 / *objective_s));
}

std::string name_of(const Frontier& frontier, const std::vector<Axis>& varying) {
  std::string name;
  for (const Axis& axis : varying) {
    if (is_repeat_axis(axis)) continue;
    name +=
        fmt::format("{}{} {}", name.empty() ? "" : ", ", axis.name, axis.text(frontier.example));
  }
  return name;
}

// "yes", "no", or "2 of 3" of the repeats that measured the load.
std::string admitted_cell(const FrontierCurve& curve, const FrontierLoad& load) {
  const auto admits = std::ranges::count_if(curve.repeats, [&](const RepeatCurve& repeat) {
    return std::ranges::count(repeat.loads, load.tokens_global, &LoadTpot::tokens_global) > 0 &&
           repeat.admitted && load.tokens_global <= *repeat.admitted;
  });
  if (admits == load.num_repeats) return "yes";
  return admits == 0 ? "no" : fmt::format("{} of {}", admits, load.num_repeats);
}

std::string table_of(const Frontier& frontier) {
  TextTable table{.columns = {{"EP"},
                              {"tok/group"},
                              {"tok/rank"},
                              {"repeats"},
                              {"TPOT ms"},
                              {"tok/s/user"},
                              {"interval"},
                              {"tok/s/rank"},
                              {"interval"},
                              {"admitted"}},
                  .rows = {}};
  for (const FrontierCurve& curve : frontier.curves) {
    for (const FrontierLoad& load : loads_of(curve)) {
      table.rows.push_back(
          {std::to_string(curve.ep_size), std::to_string(load.tokens_global),
           short_number(static_cast<double>(load.tokens_global) / curve.ep_size),
           std::to_string(load.num_repeats), short_number(load.tpot_s.median * 1e3),
           short_number(load.user_rate.median), interval_text(load.user_rate.interval),
           short_number(load.rank_rate.median), interval_text(load.rank_rate.interval),
           admitted_cell(curve, load)});
    }
  }
  return table.rows.empty() ? "" : render(table);
}

// ", 26.5 tok/s/user and 2147 tok/s/rank there"; empty where no repeat measured the load.
std::string rates_text(const FrontierCurve& curve, std::int64_t tokens) {
  for (const FrontierLoad& load : loads_of(curve)) {
    if (load.tokens_global != tokens) continue;
    return fmt::format(", {} tok/s/user and {} tok/s/rank there",
                       short_number(load.user_rate.median), short_number(load.rank_rate.median));
  }
  return "";
}

// "  EP8: 448 tokens admitted (384-448 in 3 of 3 repeats), ... there; latency_objective"
std::string end_line(const FrontierCurve& curve) {
  std::vector<std::int64_t> admitted;
  std::set<std::string> kinds;
  for (const RepeatCurve& repeat : curve.repeats) {
    if (repeat.admitted) admitted.push_back(*repeat.admitted);
    kinds.insert(repeat.stopped_by.empty() ? "not finished" : repeat.stopped_by);
  }
  std::string text = fmt::format("  EP{}: no load admitted", curve.ep_size);
  if (!admitted.empty()) {
    std::ranges::sort(admitted);
    const std::int64_t median = admitted[(admitted.size() - 1) / 2];
    text = fmt::format("  EP{}: {} tokens admitted", curve.ep_size, median);
    if (admitted.size() < curve.repeats.size() || admitted.front() != admitted.back()) {
      text += fmt::format(" ({}-{} in {} of {} repeats)", admitted.front(), admitted.back(),
                          admitted.size(), curve.repeats.size());
    }
    text += rates_text(curve, median);
  }
  return text + "; " + join(std::vector<std::string>(kinds.begin(), kinds.end())) + "\n";
}

std::string gain_line(const FrontierGain& gain) {
  const std::string head = fmt::format("  EP{} against EP{} at {} tok/s/user: ", gain.b_ep_size,
                                       gain.a_ep_size, short_number(gain.user_rate));
  if (!gain.why_not.empty()) return head + "not compared: " + gain.why_not + "\n";
  std::string shown;
  if (gain.shown == Shown::nothing) shown = "; no difference shown";
  if (gain.shown == Shown::too_few) shown = "; more repeats are needed to show a difference";
  return head + fmt::format(
                    "{:.2f}x the tok/s/rank ({:.2f}-{:.2f}x, {} against {}, {} and {} "
                    "repeats{})\n",
                    gain.ratio, gain.interval.low, gain.interval.high, short_number(gain.b.median),
                    short_number(gain.a.median), gain.b_repeats, gain.a_repeats, shown);
}

}  // namespace

std::string frontier_text(const std::vector<TableRow>& rows, const std::vector<Axis>& varying) {
  std::string text;
  for (const Frontier& frontier : frontiers_of(rows)) {
    const std::string name = name_of(frontier, varying);
    text += fmt::format("\nFrontier{}{}\n({}; tok/s/rank of the whole model; medians of repeats)\n",
                        name.empty() ? "" : ": ", name, heading_of(frontier.limits));
    text += table_of(frontier);
    for (const FrontierCurve& curve : frontier.curves) text += end_line(curve);
    for (const FrontierGain& gain : gains_of(frontier)) text += gain_line(gain);
  }
  return text;
}

}  // namespace epsweep
