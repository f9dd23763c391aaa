#include "workload/token_sample.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"

namespace epsweep {
namespace {

// Above any token a point can have, whose assignments are counted in 31 bits.
constexpr std::int64_t kFirstToken = std::int64_t{1} << 32;

// The same routing for so many tokens that the sample is part of it.
SweepPoint enlarged(SweepPoint point) {
  point.concurrency = {.mode = ConcurrencyMode::fixed_global,
                       .tokens = kFirstToken + num_sample_tokens(point),
                       .tokens_per_rank = {}};
  return point;
}

}  // namespace

Foresight foresight_of(const SweepPoint& point) {
  return DistributionCatalog::instance().at(point.routing.distribution).foresight;
}

std::int64_t num_sample_tokens(const SweepPoint& point) {
  constexpr std::int64_t kMost = 4096, kLeast = 256, kGateOperations = std::int64_t{1} << 30;
  if (foresight_of(point) != Foresight::sampled_by_gate) return kMost;
  const std::int64_t per_token = point.model.num_experts * point.model.hidden_dim;
  return std::clamp(kGateOperations / std::max<std::int64_t>(per_token, 1), kLeast, kMost);
}

TokenSample draw_sample(const SweepPoint& point, int layer) {
  EPS_EXPECT(foresight_of(point) != Foresight::recorded, "a recording has no further tokens");
  const SweepPoint large = enlarged(point_as_solved(point, layer));
  return {.first_token = kFirstToken,
          .trace = draw_tokens(large, layer, {kFirstToken, large.tokens_global()})};
}

const TokenSample& SampleCache::of(const SweepPoint& point, int layer) {
  const std::string key =
      fmt::format("{} layer={}", trace_key(enlarged(point_as_solved(point, layer))), layer);
  const auto found = samples_.find(key);
  if (found != samples_.end()) return found->second;
  return samples_.emplace(key, draw_sample(point, layer)).first->second;
}

}  // namespace epsweep
