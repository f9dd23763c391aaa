// Routes as JSON lines, one token of one layer each.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "workload/recordings/trace.h"

namespace epsweep {
namespace {

constexpr std::int64_t kMaxIndex = std::numeric_limits<std::int32_t>::max();

struct TraceLine {
  std::string where;  // "file:line"
  Json json;

  [[noreturn]] void refuse(const std::string& what) const {
    throw ConfigError(where + ": " + what);
  }
};

// Absent on lines about the recording.
const Json* expert_list(const TraceLine& line) {
  const Json& json = line.json;
  if (!json.is_object()) line.refuse("expected an object like {\"layer\": 0, \"experts\": [ids]}");
  if (json.contains("experts") && json.contains("topk_ids")) {
    line.refuse("has both experts and topk_ids");
  }
  if (json.contains("experts")) return &json["experts"];
  if (json.contains("topk_ids")) return &json["topk_ids"];
  if (json.contains("meta") || (json.contains("type") && json["type"] == "meta")) return nullptr;
  line.refuse("has no experts (nor topk_ids)");
}

std::int64_t read_whole(const TraceLine& line, const Json& value, const std::string& what) {
  if (!value.is_number_integer()) {
    line.refuse(fmt::format("{} {} is not a whole number", what, json_excerpt(value)));
  }
  if (value.is_number_unsigned() &&
      value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) {
    line.refuse(fmt::format("{} {} is too large", what, json_excerpt(value)));
  }
  return value.get<std::int64_t>();
}

std::int64_t read_index(const TraceLine& line, const Json& value, const std::string& what) {
  const std::int64_t index = read_whole(line, value, what);
  if (index < 0 || index >= kMaxIndex) {
    line.refuse(fmt::format("{} {} is outside 0..{}", what, index, kMaxIndex - 1));
  }
  return index;
}

// They are not used, but a list of another length belongs to other ids.
void check_weights(const TraceLine& line, std::size_t num_ids) {
  if (!line.json.contains("topk_weights")) return;
  const Json& weights = line.json["topk_weights"];
  if (!weights.is_array() || weights.size() != num_ids ||
      !std::all_of(weights.begin(), weights.end(), [](const Json& w) { return w.is_number(); })) {
    line.refuse(fmt::format("topk_weights {} are not one number for each of {} experts",
                            json_excerpt(weights), num_ids));
  }
}

void read_line(const TraceLine& line, const TraceModel& model, TraceBuilder& trace) {
  const Json* list = expert_list(line);
  if (list == nullptr) return;
  if (!list->is_array()) line.refuse("experts is not a list: " + json_excerpt(*list));
  std::int64_t layer = 0;
  if (line.json.contains("layer")) layer = read_index(line, line.json["layer"], "layer");
  // Lines in another order, or of several requests mixed, would be taken for other tokens.
  if (line.json.contains("token")) {
    const std::int64_t token = read_index(line, line.json["token"], "token");
    if (token != trace.num_seen(layer)) {
      line.refuse(
          fmt::format("token {} where token {} of layer {} is expected: lines must be in "
                      "token order",
                      token, trace.num_seen(layer), layer));
    }
  }
  std::vector<std::int64_t> ids;
  for (const Json& value : *list) ids.push_back(read_whole(line, value, "expert"));
  const std::string problem = token_problem(model, ids);
  if (!problem.empty()) line.refuse(problem);
  check_weights(line, ids.size());
  trace.add_token(layer, ids);
}

}  // namespace

// The whole text is checked, also the lines that no point asks for.
RecordedTrace read_trace_lines(std::string_view text, const std::string& where,
                               const TraceModel& model, const Cut& tokens) {
  TraceBuilder trace(model);
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view content = text.substr(begin, end - begin);
    const std::string line_where = fmt::format("{}:{}", where, ++number);
    begin = end + 1;
    if (content.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    read_line({line_where, parse_json(content, line_where)}, model, trace);
  }
  return trace.finish(where, tokens);
}

}  // namespace epsweep
