#include "report/verdict_lines.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "report/record_access.h"
#include "report/verdict.h"

namespace epsweep {
namespace {

// p50s of the repeats by EP size.
using ByEpSize = std::map<double, std::vector<double>>;

// What must be equal for EP sizes to be compared; runs of one identity count as repeats.
std::string held(const TableRow& row, const std::vector<Axis>& varying) {
  std::string text = fmt::format("{} {}", plain_text(find_value(*row.record, "point.concurrency")),
                                 plain_text(find_value(*row.record, "point.tokens")));
  for (const Axis& axis : varying) {
    if (is_repeat_axis(axis)) continue;
    text += fmt::format(" {} {}", axis.name, axis.text(row));
  }
  return text;
}

std::string lines_of(const std::string& what, const ByEpSize& sizes) {
  const bool repeated =
      std::ranges::any_of(sizes, [](const auto& size) { return size.second.size() > 1; });
  if (sizes.size() < 2 || !repeated) return "";
  const auto& [first_size, first] = *sizes.begin();
  std::string text;
  for (auto size = std::next(sizes.begin()); size != sizes.end(); ++size) {
    text += fmt::format("  {}: {}\n", what,
                        difference_text(fmt::format("EP{:.0f}", size->first),
                                        fmt::format("EP{:.0f}", first_size), first, size->second));
  }
  return text;
}

}  // namespace

std::string verdict_text(const std::vector<TableRow>& measured, const std::vector<Axis>& varying) {
  std::vector<std::string> order;
  std::map<std::string, ByEpSize> groups;
  for (const TableRow& row : measured) {
    const auto p50 = find_number(*row.record, "layer.slowest_us.p50");
    const auto ep_size = find_number(*row.record, "point.ep_size");
    if (!p50.has_value() || !ep_size.has_value()) continue;
    // Made only where the first was slow, and right after it: not a repeat.
    if (find_number(*row.record, "point.attempt").value_or(1) > 1) continue;
    const std::string key = held(row, varying);
    if (!groups.contains(key)) order.push_back(key);
    groups[key][*ep_size].push_back(*p50);
  }
  std::string text;
  for (const std::string& key : order) text += lines_of(key, groups[key]);
  if (text.empty()) return "";
  return "\nRepeats (layer p50, chained; intervals that overlap show no difference)\n" + text;
}

}  // namespace epsweep
