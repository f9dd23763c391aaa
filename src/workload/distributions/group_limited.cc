// Random choices under the expert groups of the model's router, which limit how many ranks a token
// goes to.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "workload/distributions/load_router.h"
#include "workload/distributions/lognormal_loads.h"

namespace epsweep {
namespace {

// Log rates beyond any noise: an expert that every token has, and one that no token has.
constexpr double kAlways = 1e4, kNever = -1e4;
constexpr double kShortestRing = 1e-20;

double log_rate(double rate) {
  return std::clamp(std::log(rate), kNever, kAlways);
}

// The score of an expert is its log rate plus Gumbel noise. Without groups the top_k best scores
// are then exactly what a distribution by load draws (a race of exponential clocks). Groups are
// judged as the model's router judges them, by their best score or the sum of the two best, so
// which are kept follows the loads too: a hot group is kept more often than its load alone would
// say. With the sigmas of lognormal_blocks, 256 experts and 4 of 8 groups kept, max/mean rank loads
// at EP 8/32/256 rise from 1.92/2.56/6.35 to 2.13/2.82/6.86 (20,000 tokens, means over 40 layers).
double score(double log_rate, double uniform) {
  // A uniform value of 0 would make the score infinite.
  const double ring = std::max(-std::log1p(-uniform), kShortestRing);
  return log_rate - std::log(ring);
}

// -log(1 - u) to a relative error of 5e-6, without a branch. 1 - u is exact because u is a multiple
// of 2^-53; it is m * 2^-k with m in [0.7, 1.42), and log m = 2 artanh(z) with |z| < 0.172, whose
// series is cut after z^5.
inline double approximate_ring(double u) {
  constexpr std::uint64_t kSqrtHalf = 0x3fe6a09e667f3bcdULL, kMantissa = (1ULL << 52) - 1;
  const auto bits = std::bit_cast<std::uint64_t>(1 - u) - kSqrtHalf;
  const double m = std::bit_cast<double>((bits & kMantissa) + kSqrtHalf);
  const auto k = static_cast<double>(static_cast<std::int64_t>(bits) >> 52);
  const double z = (m - 1) / (m + 1), zz = z * z;
  const double log_m = 2 * z * (1 + zz * (1.0 / 3 + zz * (1.0 / 5)));
  return std::max(-(k * std::numbers::ln2 + log_m), kShortestRing);
}

// exp(score) of every expert, to a relative error of 1e-5.
EPSWEEP_MULTIVERSION
void approximate_odds(const RandomStream& stream, std::span<const double> rates,
                      std::span<double> odds) {
  for (std::size_t e = 0; e < odds.size(); ++e) {
    odds[e] = rates[e] / approximate_ring(stream.uniform(e));
  }
}

// 0 for a single value. Several chains, because a comparison has to wait for the one before it.
double second_largest(std::span<const double> values) {
  constexpr std::size_t kChains = 8;
  std::array<double, kChains> first{}, second{};
  for (std::size_t begin = 0; begin < values.size(); begin += kChains) {
    const std::size_t size = std::min(kChains, values.size() - begin);
    for (std::size_t i = 0; i < size; ++i) {
      second[i] = std::max(second[i], std::min(first[i], values[begin + i]));
      first[i] = std::max(first[i], values[begin + i]);
    }
  }
  double best = 0, next = 0;
  for (std::size_t i = 0; i < kChains; ++i) {
    next = std::max({next, second[i], std::min(best, first[i])});
    best = std::max(best, first[i]);
  }
  return next;
}

// What decides is scores in full precision, but their logarithms are slow and hardly any expert
// comes near: odds that are cheap and nearly right tell which ones do. An expert whose odds are
// more than this below those of another has the lower score.
constexpr double kSurelyLower = 1 - 1e-4;

// A draw costs about 3 us for 256 experts.
class GroupLimitedRouter {
 public:
  GroupLimitedRouter(std::vector<double> log_rates, const RoutingContext& context)
      : log_rates_(std::move(log_rates)),
        limit_(context.model->router.group_limit()),
        seed_(context.seed),
        layer_(static_cast<std::uint64_t>(context.layer)),
        step_(static_cast<std::uint64_t>(context.step)),
        has_contenders_(limit_.limits()) {
    for (const double log_rate : log_rates_) {
      rates_.push_back(std::exp(log_rate));
      has_contenders_ = has_contenders_ && std::fabs(log_rate) < kLargestLogRate;
    }
  }

  void operator()(std::int64_t token, std::span<std::int32_t> experts) const {
    const RandomStream stream(seed_, Stream::routing, layer_, step_,
                              static_cast<std::uint64_t>(token));
    Scratch& scratch = scratch_for(limit_, log_rates_.size());
    if (has_contenders_) return choose_among_contenders(stream, scratch, experts);
    for (std::size_t e = 0; e < log_rates_.size(); ++e) score_one(stream, e, scratch);
    limited_top_k(std::span<const double>(scratch.scores), limit_, scratch.groups, experts);
  }

 private:
  // Kept between calls, so that a token allocates nothing.
  struct Scratch {
    std::vector<double> scores, odds;
    GroupScratch<double> groups;
  };
  static Scratch& scratch_for(const GroupLimit& limit, std::size_t num_experts) {
    static thread_local Scratch scratch;
    scratch.scores.assign(num_experts, -std::numeric_limits<double>::infinity());
    scratch.odds.resize(num_experts);
    scratch.groups.reserve(limit);
    return scratch;
  }

  void score_one(const RandomStream& stream, std::size_t e, Scratch& scratch) const {
    scratch.scores[e] = score(log_rates_[e], stream.uniform(e));
  }

  // Those of [begin, end) whose odds are not surely lower than `least`.
  void score_from(const RandomStream& stream, std::size_t begin, std::size_t end, double least,
                  Scratch& scratch) const {
    for (std::size_t e = begin; e < end; ++e) {
      if (scratch.odds[e] >= least * kSurelyLower) score_one(stream, e, scratch);
    }
  }

  // Scores the two best of each group, which say what groups are kept, and then the best of those;
  // all others keep a score of minus infinity.
  void choose_among_contenders(const RandomStream& stream, Scratch& scratch,
                               std::span<std::int32_t> experts) const {
    approximate_odds(stream, rates_, scratch.odds);
    const std::span<const double> odds(scratch.odds), scores(scratch.scores);
    const std::size_t size = odds.size() / static_cast<std::size_t>(limit_.num_groups);
    for (std::size_t begin = 0; begin < odds.size(); begin += size) {
      score_from(stream, begin, begin + size, second_largest(odds.subspan(begin, size)), scratch);
    }
    keep_best_groups(scores, limit_, scratch.groups);
    const std::span<const std::int32_t> kept(scratch.groups.kept);
    top_k_of_groups(odds, size, kept, experts);
    const double least = odds[static_cast<std::size_t>(experts.back())];
    for (const std::int32_t group : kept) {
      const std::size_t begin = static_cast<std::size_t>(group) * size;
      score_from(stream, begin, begin + size, least, scratch);
    }
    top_k_of_groups(scores, size, kept, experts);
  }

  // Rates and odds within it are far from the ends of doubles.
  static constexpr double kLargestLogRate = 300;

  std::vector<double> log_rates_, rates_;
  GroupLimit limit_;
  std::uint64_t seed_, layer_, step_;
  bool has_contenders_;  // else every expert is scored
};

TokenRouter make(const RoutingContext& context) {
  EPS_EXPECT(context.model != nullptr, "a routing without its model");
  const ModelShape& model = *context.model;
  const std::string label = context.routing->label();
  if (model.router.num_groups == 1) {
    throw ConfigError(
        fmt::format("{}: the router of {} has no expert groups (num_groups is 1); uniform and "
                    "lognormal_blocks are the distributions without",
                    label, model.name));
  }
  if (const auto problem = find_router_problem(model)) {
    throw ConfigError(fmt::format("{}: {}", label, problem->text));
  }
  std::vector<double> log_rates = race_rates(context, lognormal_loads(context));
  for (double& rate : log_rates) rate = log_rate(rate);
  return GroupLimitedRouter(std::move(log_rates), context);
}

const bool registered = DistributionCatalog::instance().add(
    {"group_limited",
     "uniform, or lognormal_blocks with sigmas, within the best topk_groups of the model's expert "
     "groups",
     sigma_params({}), make, sigma_scale_knob()});

}  // namespace
}  // namespace epsweep
