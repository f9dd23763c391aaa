#include "report/record_layout.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "report/point_record.h"
#include "report/record_access.h"

namespace epsweep {
namespace {

constexpr int kMostRanks = 1'000'000;

int whole_number(const Json& record, const char* path, const std::string& where) {
  const Json* value = find_value(record, path);
  if (value == nullptr || !value->is_number_integer() || *value < 1 || *value > kMostRanks) {
    throw ConfigError(fmt::format("{}: '{}' is not a number of ranks", where, path));
  }
  return value->get<int>();
}

template <typename Enum>
Enum named(const Json& record, const char* path, const std::vector<std::string>& names,
           const std::string& where) {
  const std::string name = find_text(record, path);
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) {
    throw ConfigError(fmt::format("{}: '{}' is none of {}", where, path, join(names)));
  }
  return static_cast<Enum>(found - names.begin());
}

}  // namespace

GroupLayout layout_of_record(const Json& record, const std::string& where) {
  const int world_size = whole_number(record, "world_size", where);
  const int ep_size = whole_number(record, "point.ep_size", where);
  if (ep_size > world_size) {
    throw ConfigError(fmt::format("{}: ep_size {} in a world of {}", where, ep_size, world_size));
  }
  return group_layout(world_size, ep_size,
                      named<Mapping>(record, "point.mapping", kMappingNames, where),
                      named<Groups>(record, "point.groups", kGroupsNames, where));
}

std::vector<int> ranks_of_record(const Json& record, const std::string& where) {
  const Json* listed = find_value(record, "ranks");
  if (listed != nullptr && listed->is_array() &&
      std::ranges::all_of(*listed, &Json::is_number_integer)) {
    return listed->get<std::vector<int>>();
  }
  return active_ranks(layout_of_record(record, where));
}

std::string point_heading(const Json& record) {
  std::vector<std::string> parts;
  const auto add = [&](const char* path, const std::string& format) {
    const std::string text = plain_text(find_value(record, path));
    if (!text.empty()) parts.push_back(fmt::format(fmt::runtime(format), text));
  };
  add("point.name", "{}");
  add("point.model.name", "{}");
  add("point.ep_size", "EP{}");
  add("point.tokens_global", "{} tokens of a group");
  if (const std::string routing = routing_text(record); !routing.empty()) parts.push_back(routing);
  if (const std::string placement = placement_text(record); !placement.empty()) {
    parts.push_back(placement);
  }
  for (const char* path : {"point.exchange_unit", "point.transport", "point.launch",
                           "point.grouped_gemm", "point.dtype", "point.mapping"}) {
    add(path, "{}");
  }
  add("point.repeat", "repeat {}");
  add("run", "run {}");
  return join(parts);
}

TableRows rows_of_layout(const GroupLayout& layout) {
  TableRows rows;
  for (const int rank : active_ranks(layout)) {
    rows.group_of_row.push_back(layout.group_of_rank[static_cast<std::size_t>(rank)]);
  }
  return rows;
}

}  // namespace epsweep
