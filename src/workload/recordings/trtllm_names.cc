// Names and meta data of TensorRT-LLM recordings.
#include <charconv>
#include <limits>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/json.h"
#include "workload/recordings/trtllm.h"

namespace epsweep {
namespace {

constexpr std::int64_t kMaxIndex = std::numeric_limits<std::int32_t>::max();

std::int64_t read_meta_count(const Json& root, const char* key, const std::string& where) {
  if (!root.contains(key)) throw ConfigError(fmt::format("{}: has no {}", where, key));
  const Json& value = root[key];
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() < 1 ||
      value.get<std::uint64_t>() > static_cast<std::uint64_t>(kMaxIndex)) {
    throw ConfigError(
        fmt::format("{}: {} {} is not a count from 1", where, key, json_excerpt(value)));
  }
  return value.get<std::int64_t>();
}

// Digits only, so that "+1", " 1" and "-1" are no index.
bool parse_index(std::string_view text, std::int64_t& value) {
  if (text.empty() || text.front() < '0' || text.front() > '9') return false;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && rest == text.data() + text.size() && value <= kMaxIndex;
}

}  // namespace

TrtllmMeta read_trtllm_meta(std::string_view text, const std::string& where) {
  const Json root = parse_json(text, where);
  if (!root.is_object()) throw ConfigError(where + ": not a JSON object");
  return {.num_experts = read_meta_count(root, "num_experts", where),
          .top_k = read_meta_count(root, "num_experts_per_token", where)};
}

IterationLayer parse_tensor_name(const Tensor& tensor) {
  const std::string_view name = tensor.name;
  const std::size_t middle = name.find('_');
  IterationLayer key;
  if (middle == std::string_view::npos || !parse_index(name.substr(0, middle), key.iteration) ||
      !parse_index(name.substr(middle + 1), key.layer)) {
    throw ConfigError(tensor.where + ": the name is not \"{iteration}_{layer}\"");
  }
  return key;
}

RecordedIterations recorded_iterations(const std::vector<IterationLayer>& keys,
                                       const std::string& where) {
  if (keys.empty()) throw ConfigError(where + ": holds no tensors");
  RecordedIterations found{.first = keys.front().iteration, .last = keys.back().iteration};
  for (const IterationLayer& key : keys) {
    if (key.iteration == found.first) found.layers.push_back(key.layer);
  }
  std::int64_t iteration = found.first;
  std::size_t place = 0;  // in the layers of that iteration
  const auto refuse = [&](const IterationLayer& key) {
    throw ConfigError(fmt::format(
        "{}: recorded iterations must be contiguous and hold the same layers: iteration {} layer "
        "{} is missing before iteration {} layer {}",
        where, iteration, found.layers[place], key.iteration, key.layer));
  };
  for (const IterationLayer& key : keys) {
    if (key.iteration != iteration || key.layer != found.layers[place]) refuse(key);
    if (++place == found.layers.size()) {
      place = 0;
      ++iteration;
    }
  }
  if (place != 0) {
    throw ConfigError(fmt::format("{}: iteration {} ends before layer {}", where, iteration,
                                  found.layers[place]));
  }
  return found;
}

}  // namespace epsweep
