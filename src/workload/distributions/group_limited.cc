// Random choices under the expert groups of the model's router, which limit how many ranks a token
// goes to.
#include <algorithm>
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

// What decides is scores in full precision, but their logarithms are slow and hardly any expert
// comes near: odds that are cheap and nearly right tell which ones do. An expert whose odds are
// more than this below those of another has the lower score.
constexpr double kSurelyLower = 1 - 1e-4;

// A draw costs about 1.5 us for 256 experts.
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
    if (has_contenders_) {
      score_contenders(stream, experts, scratch);
    } else {
      score_all(stream, scratch);
    }
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

  void score_all(const RandomStream& stream, Scratch& scratch) const {
    for (std::size_t e = 0; e < log_rates_.size(); ++e) score_one(stream, e, scratch);
  }

  // The two best of each group, which say which groups are kept, and the best of those.
  void score_contenders(const RandomStream& stream, std::span<std::int32_t> experts,
                        Scratch& scratch) const {
    approximate_odds(stream, rates_, scratch.odds);
    const std::span<const double> odds(scratch.odds);
    const auto score_from = [&](std::size_t begin, std::size_t size, double least) {
      for (std::size_t e = begin; e < begin + size; ++e) {
        if (odds[e] >= least) score_one(stream, e, scratch);
      }
    };
    const std::size_t size = odds.size() / static_cast<std::size_t>(limit_.num_groups);
    for (std::size_t begin = 0; begin < odds.size(); begin += size) {
      double first = 0, second = 0;
      for (std::size_t e = begin; e < begin + size; ++e) {
        second = std::max(second, std::min(first, odds[e]));
        first = std::max(first, odds[e]);
      }
      score_from(begin, size, second * kSurelyLower);
    }
    limited_top_k(std::span<const double>(scratch.scores), limit_, scratch.groups, experts);
    TopKIndices<double> best(odds, experts);
    for (const std::int32_t group : scratch.groups.kept) {
      const std::size_t begin = static_cast<std::size_t>(group) * size;
      best.offer(begin, begin + size);
    }
    const double least = odds[static_cast<std::size_t>(experts.back())] * kSurelyLower;
    for (const std::int32_t group : scratch.groups.kept) {
      score_from(static_cast<std::size_t>(group) * size, size, least);
    }
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
     sigma_params({}), make});

}  // namespace
}  // namespace epsweep
