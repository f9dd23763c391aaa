// Routing replayed from a recording: the experts of each token.
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <mutex>
#include <tuple>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "workload/distribution.h"
#include "workload/recordings/trtllm.h"

namespace epsweep {
namespace {

RecordedTrace read_trace(const std::string& path, const TraceModel& model, const Cut& cut) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return read_trtllm_routes(path, model, cut);
  return read_trace_lines(read_text_file(path), path, model, cut);
}

// Each recording is read once per process, model and cut; many points and layers ask for it.
const RecordedTrace& trace_of(const RoutingContext& context) {
  static std::mutex mutex;
  static std::map<std::tuple<std::string, int, int, std::int64_t, std::int64_t>, RecordedTrace>
      recordings;
  const Routing& routing = *context.routing;
  const Cut cut = {.skip = static_cast<std::int64_t>(routing.param_or("skip_tokens", 0)),
                   .max = static_cast<std::int64_t>(routing.param_or("max_tokens", 0))};
  const TraceModel model = {.num_experts = context.num_experts, .top_k = context.top_k};
  const std::lock_guard lock(mutex);
  const auto key = std::make_tuple(routing.file, model.num_experts, model.top_k, cut.skip, cut.max);
  const auto found = recordings.find(key);
  if (found != recordings.end()) return found->second;
  return recordings.emplace(key, read_trace(routing.file, model, cut)).first->second;
}

TokenRouter make(const RoutingContext& context) {
  const RecordedTrace& trace = trace_of(context);
  const auto layer = trace.layers.find(context.layer);
  const auto top_k = static_cast<std::size_t>(context.top_k);
  const std::size_t num_tokens = layer == trace.layers.end() ? 0 : layer->second.size() / top_k;
  const auto per_step = static_cast<std::size_t>(context.num_tokens);
  const auto step = static_cast<std::size_t>(context.step);
  if (per_step > 0 && num_tokens / per_step <= step) {
    throw ConfigError(
        fmt::format("{}: layer {} has {} tokens, the point needs {}{}", context.routing->file,
                    context.layer, num_tokens, context.num_tokens,
                    step == 0 ? "" : fmt::format(" for step {} and each before it", step)));
  }
  if (num_tokens == 0) return [](std::int64_t, std::span<std::int32_t>) {};
  return [&ids = layer->second, top_k, first = step * per_step](std::int64_t token,
                                                                std::span<std::int32_t> experts) {
    const auto row =
        std::span(ids).subspan((first + static_cast<std::size_t>(token)) * top_k, top_k);
    std::copy(row.begin(), row.end(), experts.begin());
  };
}

constexpr auto kWhenSaid = ParamSpec::Presence::when_said;

const bool registered = DistributionCatalog::instance().add(
    {"recorded_trace",
     "the recorded experts of each token: step s has the tokens s * C and following of a layer",
     {{"trace_file", ParamSpec::Kind::file, 0, 0, 0,
       "JSON lines {\"layer\": l, \"experts\" or \"topk_ids\": [top_k ids]}, or a folder of "
       "TensorRT-LLM raw routes"},
      {"skip_tokens", ParamSpec::Kind::count, 0, 1e12, 0,
       "tokens of every layer left out at the start", kWhenSaid},
      {"max_tokens", ParamSpec::Kind::count, 1, 1e12, 0, "how many of the rest are used",
       kWhenSaid}},
     make,
     {},
     [](const RoutingContext& context) { return trace_of(context).notes; },
     Foresight::recorded});

}  // namespace
}  // namespace epsweep
