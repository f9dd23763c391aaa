#include "report/point_choices.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/statistics.h"
#include "base/text.h"
#include "report/record_access.h"
#include "report/verdict.h"

namespace epsweep {
namespace {

std::string held_text(const TableRow& row, const std::vector<Axis>& varying,
                      const std::vector<std::string>& choice) {
  const Json& record = *row.record;
  std::string text = fmt::format("{} {} EP{}", plain_text(find_value(record, "point.concurrency")),
                                 plain_text(find_value(record, "point.tokens")),
                                 plain_text(find_value(record, "point.ep_size")));
  for (const Axis& axis : varying) {
    const bool chosen = std::ranges::find(choice, axis.name) != choice.end();
    if (chosen || is_repeat_axis(axis)) continue;
    text += fmt::format(" {} {}", axis.name, axis.text(row));
  }
  return text;
}

std::string option_name(const TableRow& row, const std::vector<Axis>& varying,
                        const std::vector<std::string>& choice) {
  std::vector<std::string> parts;
  for (const std::string& name : choice) {
    const auto axis = std::ranges::find(varying, name, &Axis::name);
    if (axis != varying.end()) parts.push_back(axis->text(row));
  }
  return join(parts, " ");
}

PointOption& option_of(const std::string& name, const TableRow& row, PointChoice& point) {
  const auto found = std::ranges::find(point.options, name, &PointOption::name);
  if (found != point.options.end()) return *found;
  return point.options.emplace_back(
      PointOption{.name = name, .row = row, .us = {}, .median_us = 0});
}

}  // namespace

const PointOption* PointChoice::find(const std::string& name) const {
  const auto found = std::ranges::find(options, name, &PointOption::name);
  return found == options.end() ? nullptr : &*found;
}

const PointOption& PointChoice::best() const {
  EPS_EXPECT(!options.empty(), "a point without options");
  return *std::ranges::min_element(options, {}, &PointOption::median_us);
}

bool PointChoice::best_is_shown() const {
  const PointOption& first = best();
  const auto is_behind = [&first](const PointOption& other) {
    return &other == &first || difference_between(first.us, other.us).shown == Shown::slower;
  };
  return options.size() > 1 && std::ranges::all_of(options, is_behind);
}

std::vector<PointChoice> point_choices(const std::vector<TableRow>& rows,
                                       const std::vector<Axis>& varying,
                                       const std::vector<std::string>& choice,
                                       const std::string& path) {
  std::vector<PointChoice> points;
  std::map<std::string, std::size_t> position;
  for (const TableRow& row : rows) {
    const auto us = find_number(*row.record, path);
    if (!us.has_value()) continue;
    const std::string held = held_text(row, varying, choice);
    const auto [found, is_new] = position.emplace(held, points.size());
    if (is_new) points.push_back({.row = row, .held = held, .options = {}});
    option_of(option_name(row, varying, choice), row, points[found->second]).us.push_back(*us);
  }
  for (PointChoice& point : points) {
    for (PointOption& option : point.options) option.median_us = nearest_rank(option.us, 0.5);
  }
  return points;
}

}  // namespace epsweep
