#include "report/replay_series.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "base/error.h"
#include "report/record_access.h"
#include "report/verdict.h"

namespace epsweep {
namespace {

std::string place_of(const ReplayFile& file, std::size_t index) {
  return fmt::format("{}: points[{}]", file.path, index);
}

std::optional<double> headline_us(const Json& record) {
  const auto layer = find_number(record, "layer.slowest_us.p50");
  return layer ? layer : find_number(record, "all_stages.slowest_us.p50");
}

}  // namespace

void expect_comparable(const std::vector<ReplayFile>& files) {
  struct First {
    std::string place, regime;
  };
  std::map<std::string, First> first_of_name;
  std::map<std::tuple<std::string, int, std::int64_t, int>, std::string> seen;
  for (const ReplayFile& file : files) {
    for (std::size_t i = 0; i < file.points.size(); ++i) {
      const ReplayPoint& point = file.points[i];
      const std::string place = place_of(file, i);
      const auto [first, is_first] = first_of_name.emplace(point.name, First{place, point.regime});
      if (first->second.regime != point.regime) {
        throw ConfigError(fmt::format(
            "{}.regime: '{}' is {} here and {} in {}: times of different regimes are not "
            "comparable",
            place, point.name, point.regime, first->second.regime, first->second.place));
      }
      const auto [same, is_new] = seen.emplace(
          std::tuple{point.name, point.ep_size, point.tokens_global.value_or(-1), point.repeat},
          place);
      if (!is_new) {
        throw ConfigError(fmt::format("{}.repeat: repeat {} of this point is in {} already", place,
                                      point.repeat, same->second));
      }
    }
  }
}

std::vector<std::string> replay_verdicts(const std::vector<Json>& records) {
  using Series = std::tuple<std::string, std::int64_t>;  // name, tokens
  std::map<Series, std::map<int, std::vector<double>>> p50s_of;
  for (const Json& record : records) {
    const std::optional<double> p50 = headline_us(record);
    if (!p50) continue;
    const Series series{
        find_text(record, "point.name"),
        static_cast<std::int64_t>(find_number(record, "point.tokens_global").value_or(-1))};
    p50s_of[series][record.at("point").at("ep_size").get<int>()].push_back(*p50);
  }
  std::vector<std::string> sentences;
  for (const auto& [series, by_ep_size] : p50s_of) {
    if (std::ranges::none_of(by_ep_size, [](const auto& of) { return of.second.size() > 1; })) {
      continue;
    }
    const auto& [first_size, first] = *by_ep_size.begin();
    for (auto other = std::next(by_ep_size.begin()); other != by_ep_size.end(); ++other) {
      sentences.push_back(
          fmt::format("{}: {}", std::get<0>(series),
                      difference_text(fmt::format("EP{}", other->first),
                                      fmt::format("EP{}", first_size), first, other->second)));
    }
  }
  return sentences;
}

}  // namespace epsweep
