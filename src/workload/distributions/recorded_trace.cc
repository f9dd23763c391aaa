// Routing replayed from a file: the experts of each token as recorded.
#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <mutex>
#include <string_view>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "workload/distribution.h"

namespace epsweep {
namespace {

using Layers = std::map<std::int64_t, std::vector<std::int32_t>>;  // layer -> [tokens][top_k]

// One line of a trace file, and what it must fit.
struct TraceLine {
  std::string where;  // "file:line"
  Json json;
  std::int64_t num_experts;
  std::size_t top_k;

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

// `bound` keeps the value inside what the caller stores it in.
std::int64_t read_index(const TraceLine& line, const Json& value, std::int64_t bound,
                        const std::string& what) {
  if (!value.is_number_integer()) {
    line.refuse(fmt::format("{} {} is not a whole number", what, to_json_line(value)));
  }
  const bool huge =
      value.is_number_unsigned() && value.get<std::uint64_t>() >= static_cast<std::uint64_t>(bound);
  if (huge || value.get<std::int64_t>() < 0) {
    line.refuse(fmt::format("{} {} is outside 0..{}", what, to_json_line(value), bound - 1));
  }
  return value.get<std::int64_t>();
}

void append_experts(const TraceLine& line, const Json& list, std::vector<std::int32_t>& experts) {
  if (!list.is_array()) line.refuse("experts is not a list: " + to_json_line(list));
  if (list.size() != line.top_k) {
    line.refuse(fmt::format("{} experts in {}, the model's top_k is {}", list.size(),
                            to_json_line(list), line.top_k));
  }
  const auto begin = static_cast<std::ptrdiff_t>(experts.size());
  for (const Json& value : list) {
    const auto expert =
        static_cast<std::int32_t>(read_index(line, value, line.num_experts, "expert"));
    if (std::find(experts.begin() + begin, experts.end(), expert) != experts.end()) {
      line.refuse(fmt::format("expert {} appears twice in {}", expert, to_json_line(list)));
    }
    experts.push_back(expert);
  }
}

void read_line(const TraceLine& line, Layers& layers) {
  const Json* list = expert_list(line);
  if (list == nullptr) return;
  std::int64_t layer = 0;
  if (line.json.contains("layer")) {
    layer = read_index(line, line.json["layer"], std::numeric_limits<std::int32_t>::max(), "layer");
  }
  std::vector<std::int32_t>& experts = layers[layer];
  // Lines in another order, or of several requests mixed, would be taken for other tokens.
  if (line.json.contains("token")) {
    const auto token =
        read_index(line, line.json["token"], std::numeric_limits<std::int32_t>::max(), "token");
    const auto position = static_cast<std::int64_t>(experts.size() / line.top_k);
    if (token != position) {
      line.refuse(
          fmt::format("token {} where token {} of layer {} is expected: lines must be in "
                      "token order",
                      token, position, layer));
    }
  }
  append_experts(line, *list, experts);
}

// The whole file is checked, also the lines that no point asks for.
Layers read_trace(const std::string& path, int num_experts, int top_k) {
  const std::string text = read_text_file(path);
  Layers layers;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const auto content = std::string_view(text).substr(begin, end - begin);
    const std::string where = fmt::format("{}:{}", path, ++number);
    begin = end + 1;
    if (content.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    read_line({where, parse_json(content, where), num_experts, static_cast<std::size_t>(top_k)},
              layers);
  }
  if (layers.empty()) throw ConfigError(path + ": the trace holds no token");
  return layers;
}

// Each file is read once per process and model; many points and layers ask for it.
const Layers& trace_of(const std::string& path, int num_experts, int top_k) {
  static std::mutex mutex;
  static std::map<std::tuple<std::string, int, int>, Layers> files;
  const std::lock_guard lock(mutex);
  const auto key = std::make_tuple(path, num_experts, top_k);
  const auto found = files.find(key);
  if (found != files.end()) return found->second;
  return files.emplace(key, read_trace(path, num_experts, top_k)).first->second;
}

TokenRouter make(const RoutingContext& context) {
  const std::string& path = context.routing->file;
  const Layers& layers = trace_of(path, context.num_experts, context.top_k);
  const auto layer = layers.find(context.layer);
  const auto top_k = static_cast<std::size_t>(context.top_k);
  const std::size_t num_tokens = layer == layers.end() ? 0 : layer->second.size() / top_k;
  if (num_tokens < static_cast<std::size_t>(context.num_tokens)) {
    throw ConfigError(fmt::format("{}: layer {} has {} tokens, the point needs {}", path,
                                  context.layer, num_tokens, context.num_tokens));
  }
  if (num_tokens == 0) return [](std::int64_t, std::span<std::int32_t>) {};
  return [&ids = layer->second, top_k](std::int64_t token, std::span<std::int32_t> experts) {
    const auto row = std::span(ids).subspan(static_cast<std::size_t>(token) * top_k, top_k);
    std::copy(row.begin(), row.end(), experts.begin());
  };
}

const bool registered = DistributionCatalog::instance().add(
    {"recorded_trace",
     "the recorded experts of each token; the i-th line of a layer is its token i",
     {{"trace_file", ParamSpec::Kind::file, 0, 0, 0,
       "JSON lines {\"layer\": l, \"experts\": [top_k ids]}"}},
     make,
     Foresight::recorded});

}  // namespace
}  // namespace epsweep
