#include "workload/trace.h"

#include <map>
#include <mutex>

#include <fmt/format.h>

#include "base/error.h"
#include "base/random.h"

namespace epsweep {
namespace {

const Distribution& entry_of(const SweepPoint& point) {
  return DistributionCatalog::instance().at(point.routing.distribution);
}

RoutingContext context_of(const SweepPoint& point, int layer, const Routing& routing) {
  return {.num_experts = point.model.num_experts,
          .top_k = point.model.top_k,
          .num_tokens = point.tokens_global(),
          .layer = layer,
          .step = point.step,
          .seed = point.seed,
          .routing = &routing,
          .model = &point.model};
}

}  // namespace

std::string trace_key(const SweepPoint& point) {
  const ModelShape& model = point.model;
  const RouterShape& router = model.router;
  return fmt::format("E={} k={} hidden={} router={},{}/{},{} C={} layers={} step={} seed={} {}",
                     model.num_experts, model.top_k, model.hidden_dim,
                     static_cast<int>(router.scoring), router.topk_groups, router.num_groups,
                     router.selection_bias, point.tokens_global(), point.layers, point.step,
                     point.seed, point.routing.label());
}

std::optional<SolvedSkew> solved_skew(const SweepPoint& point, int layer) {
  if (!asked_max_over_mean(point.routing) || point.tokens_global() == 0) return std::nullopt;
  static std::mutex mutex;
  static std::map<std::string, SolvedSkew> solved;
  const std::lock_guard lock(mutex);
  const std::string key = fmt::format("{} layer={}", trace_key(point), layer);
  const auto found = solved.find(key);
  if (found != solved.end()) return found->second;
  return solved.emplace(key, solve_skew(entry_of(point), context_of(point, layer, point.routing)))
      .first->second;
}

SweepPoint point_as_solved(SweepPoint point, int layer) {
  if (!asked_max_over_mean(point.routing)) return point;
  const std::optional<SolvedSkew> solved = solved_skew(point, layer);
  const SkewKnob& skew = entry_of(point).skew;
  const double value =
      solved ? solved->param : skew.range(context_of(point, layer, point.routing)).even;
  point.routing = with_skew(point.routing, skew.param, value);
  return point;
}

TokenRouter make_token_router(const SweepPoint& point, int layer) {
  const int num_experts = point.model.num_experts, top_k = point.model.top_k;
  if (top_k < 1 || top_k > num_experts) {
    throw ConfigError(fmt::format("top_k {} is outside 1..{}, the number of experts of {}", top_k,
                                  num_experts, point.model.name));
  }
  const Distribution& distribution = entry_of(point);
  const RoutingContext context = context_of(point, layer, point.routing);
  if (!asked_max_over_mean(point.routing)) return distribution.make(context);
  return make_solved_router(distribution, context, solved_skew(point, layer));
}

const std::string& skew_param(const SweepPoint& point) {
  return entry_of(point).skew.param;
}

std::vector<RoutingNote> routing_notes(const SweepPoint& point) {
  const Distribution& distribution = entry_of(point);
  if (distribution.notes == nullptr) return {};
  return distribution.notes(context_of(point, 0, point.routing));
}

Trace draw_trace(const SweepPoint& point, int layer) {
  return draw_tokens(point, layer, {0, point.tokens_global()});
}

Trace draw_tokens(const SweepPoint& point, int layer, const TokenRange& tokens) {
  const TokenRouter router = make_token_router(point, layer);
  Trace trace{tokens.size(), point.model.top_k, point.model.num_experts, {}};
  trace.experts.resize(static_cast<std::size_t>(trace.num_tokens * trace.top_k));
  const std::span<std::int32_t> all(trace.experts);
  for (std::int64_t token = 0; token < trace.num_tokens; ++token) {
    router(tokens.begin + token, all.subspan(static_cast<std::size_t>(token * trace.top_k),
                                             static_cast<std::size_t>(trace.top_k)));
  }
  return trace;
}

std::vector<std::int64_t> rows_per_expert(const Trace& trace) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(trace.num_experts), 0);
  for (const std::int32_t expert : trace.experts) ++rows[static_cast<std::size_t>(expert)];
  return rows;
}

std::uint64_t routing_checksum(const Trace& trace) {
  Fingerprint fingerprint;
  fingerprint.add(static_cast<std::uint64_t>(trace.num_tokens));
  fingerprint.add(static_cast<std::uint64_t>(trace.top_k));
  fingerprint.add(static_cast<std::uint64_t>(trace.num_experts));
  for (const std::int32_t expert : trace.experts) {
    fingerprint.add(static_cast<std::uint64_t>(expert));
  }
  return fingerprint.value();
}

std::uint64_t routing_checksum(const std::vector<Trace>& layers) {
  Fingerprint fingerprint;
  for (const Trace& trace : layers) fingerprint.add(routing_checksum(trace));
  return fingerprint.value();
}

std::optional<std::string> trace_refusal(const SweepPoint& point, std::int64_t machine_bytes) {
  const std::int64_t bytes =
      point.tokens_global() * point.model.top_k * static_cast<std::int64_t>(sizeof(std::int32_t));
  if (bytes <= machine_bytes / 4) return std::nullopt;
  const auto gib = [](std::int64_t amount) { return static_cast<double>(amount) / 0x1.0p30; };
  return fmt::format(
      "{} tokens x top_k {} x 4 bytes: the routing of one layer takes {:.2f} GiB, more than a "
      "quarter of this machine's {:.2f} GiB",
      point.tokens_global(), point.model.top_k, gib(bytes), gib(machine_bytes));
}

}  // namespace epsweep
