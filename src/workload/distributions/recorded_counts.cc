// Expert loads from recorded counts per layer and expert.
#include <cstddef>
#include <filesystem>
#include <map>
#include <mutex>
#include <tuple>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "workload/distributions/load_router.h"
#include "workload/recordings/trtllm.h"

namespace epsweep {
namespace {

RecordedCounts read_counts(const std::string& path, const Cut& cut) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return read_trtllm_counts(path, cut);
  return read_sglang_counts(read_text_file(path), path, cut);
}

// Each recording is read once per process; many points and layers ask for it.
const RecordedCounts& counts_of(const Routing& routing) {
  static std::mutex mutex;
  static std::map<std::tuple<std::string, std::int64_t, std::int64_t>, RecordedCounts> recordings;
  const Cut cut = {.skip = static_cast<std::int64_t>(routing.param_or("skip_iterations", 0)),
                   .max = static_cast<std::int64_t>(routing.param_or("max_iterations", 0))};
  const std::lock_guard lock(mutex);
  const auto key = std::make_tuple(routing.file, cut.skip, cut.max);
  const auto found = recordings.find(key);
  if (found != recordings.end()) return found->second;
  return recordings.emplace(key, read_counts(routing.file, cut)).first->second;
}

TokenRouter make(const RoutingContext& context) {
  const std::string& path = context.routing->file;
  const RecordedCounts& counts = counts_of(*context.routing);
  if (counts.num_experts != static_cast<std::size_t>(context.num_experts)) {
    throw ConfigError(fmt::format("{}: counts of {} experts, the model has {}", path,
                                  counts.num_experts, context.num_experts));
  }
  const auto layer = static_cast<std::size_t>(context.layer);
  if (layer >= counts.layers.size()) {
    throw ConfigError(
        fmt::format("{}: {} rows that are not all zero, layer {} of the sweep needs "
                    "{}",
                    path, counts.layers.size(), layer, layer + 1));
  }
  return route_by_load(context, counts.layers[layer]);
}

std::vector<RoutingNote> notes(const RoutingContext& context) {
  const RecordedCounts& counts = counts_of(*context.routing);
  std::vector<RoutingNote> notes = counts.notes;
  if (counts.top_k && *counts.top_k != context.top_k) {
    notes.push_back({RoutingNote::Kind::warning,
                     fmt::format("recorded with {} experts per token, the model has {}",
                                 *counts.top_k, context.top_k)});
  }
  return notes;
}

constexpr auto kWhenSaid = ParamSpec::Presence::when_said;

const bool registered = DistributionCatalog::instance().add(
    {"recorded_counts",
     "loads recorded per layer and expert; layer l is the l-th that is not all zero",
     {{"counts_file", ParamSpec::Kind::file, 0, 0, 0,
       "JSON {\"logical_count\": [layers][experts] or [steps][layers][experts]}, or a folder of "
       "TensorRT-LLM expert statistics"},
      {"skip_iterations", ParamSpec::Kind::count, 0, 1e9, 0,
       "recorded steps or iterations left out at the start", kWhenSaid},
      {"max_iterations", ParamSpec::Kind::count, 1, 1e9, 0, "how many of the rest are used",
       kWhenSaid}},
     make,
     {},
     notes});

}  // namespace
}  // namespace epsweep
