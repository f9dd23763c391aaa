#include "workload/expert_sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "base/error.h"

namespace epsweep {
namespace {

// From here on a probability counts as 1: far below what any run could resolve, far above rounding.
constexpr double kCertain = 1 - 1e-12;

// Draws that may hit an expert the token already has before the rest is drawn by a scan. Any
// number is unbiased, because draws are independent; this one keeps scans rare for real loads.
constexpr int kMaxTries = 24;

// Expert ids, largest load first; equal loads by id.
std::vector<std::size_t> by_falling_load(std::span<const double> loads) {
  std::vector<std::size_t> order(loads.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return loads[a] > loads[b]; });
  return order;
}

bool contains(std::span<const std::int32_t> experts, std::int32_t expert) {
  return std::find(experts.begin(), experts.end(), expert) != experts.end();
}

// Successive sampling as a race: expert e's clock rings after an exponential time of rate w_e, and
// the first `picks` to ring are drawn. Adds to pi[e] what ringing around `time` contributes to e's
// inclusion probability, per unit of log(time):
//   w_e * time * exp(-w_e * time) * P(fewer than `picks` of the others rang before) * log_step.
// Returns P(at most `picks` of all rang before), which bounds what later times can add.
double add_time(const std::vector<double>& weights, std::size_t picks, double time, double log_step,
                std::vector<double>& pi) {
  std::vector<double> rang;
  for (const double weight : weights) rang.push_back(-std::expm1(-weight * time));
  // before[e * picks + m] = P(m of the experts 0..e-1 rang)
  std::vector<double> before((weights.size() + 1) * picks, 0.0);
  before[0] = 1;
  for (std::size_t e = 0; e < weights.size(); ++e) {
    const double* now = &before[e * picks];
    double* next = &before[(e + 1) * picks];
    next[0] = now[0] * (1 - rang[e]);
    for (std::size_t m = 1; m < picks; ++m) next[m] = now[m] * (1 - rang[e]) + now[m - 1] * rang[e];
  }
  // behind[m] = P(at most m of the experts after e rang); one entry more for the return value.
  std::vector<double> behind(picks + 1, 1.0);
  for (std::size_t e = weights.size(); e-- > 0;) {
    double others = 0;
    for (std::size_t m = 0; m < picks; ++m) others += before[e * picks + m] * behind[picks - 1 - m];
    pi[e] += weights[e] * time * (1 - rang[e]) * others * log_step;
    for (std::size_t m = picks; m > 0; --m) {
      behind[m] = behind[m] * (1 - rang[e]) + behind[m - 1] * rang[e];
    }
    behind[0] *= 1 - rang[e];
  }
  return behind[picks];
}

// The inclusion probabilities of successive sampling: an integral over log(time) by the trapezoid
// rule, which converges fast because the integrand vanishes smoothly at both ends. Its peak is
// about 1 / sqrt(picks) wide.
std::vector<double> race_probabilities(const std::vector<double>& weights, std::size_t picks) {
  constexpr double kNegligible = 1e-6, kLongest = 1e100;
  const double log_step = 1 / std::sqrt(static_cast<double>(picks));
  std::vector<double> pi(weights.size(), 0.0);
  double time = 1e-7 / *std::max_element(weights.begin(), weights.end());
  while (time < kLongest && add_time(weights, picks, time, log_step, pi) > kNegligible) {
    time *= std::exp(log_step);
  }
  return pi;
}

// Weights whose successive sampling has the inclusion probabilities `target`, all below 1 and of
// sum `picks`. Starts from Rosen's approximation -log(1 - pi), which is some percent off for few
// picks or strong skew, and corrects each weight by its own error; a handful of rounds do.
std::vector<double> race_weights(const std::vector<double>& target, std::size_t picks) {
  constexpr int kMaxRounds = 12;
  constexpr double kCloseEnough = 3e-4;
  std::vector<double> weights;
  for (const double p : target) weights.push_back(-std::log1p(-p));
  for (int round = 0; round < kMaxRounds; ++round) {
    const std::vector<double> pi = race_probabilities(weights, picks);
    double worst = 0;
    for (std::size_t e = 0; e < target.size(); ++e) {
      if (pi[e] <= 0) continue;
      worst = std::max(worst, std::fabs(pi[e] / target[e] - 1));
      weights[e] *= std::log1p(-target[e]) / std::log1p(-std::min(pi[e], kCertain));
    }
    if (worst < kCloseEnough) break;
  }
  return weights;
}

// round(probability * 2^64), capped at the largest word.
std::uint64_t word_of(double probability) {
  if (probability >= 1) return std::numeric_limits<std::uint64_t>::max();
  return static_cast<std::uint64_t>(probability * 0x1.0p64);
}

}  // namespace

std::vector<double> inclusion_probabilities(std::span<const double> loads, int top_k) {
  EPS_EXPECT(std::all_of(loads.begin(), loads.end(),
                         [](double load) { return std::isfinite(load) && load >= 0; }),
             "an expert load is negative or not finite");
  const auto positive = std::count_if(loads.begin(), loads.end(), [](double l) { return l > 0; });
  if (top_k < 1 || positive < top_k) {
    throw ConfigError(
        fmt::format("top_k {} needs as many experts with a positive load, {} of {} "
                    "have one",
                    top_k, positive, loads.size()));
  }
  const std::vector<std::size_t> order = by_falling_load(loads);
  // rest[i]: load of the experts from place i on, summed from the small end so that tiny loads
  // next to huge ones keep their digits.
  std::vector<double> rest(loads.size() + 1, 0.0);
  for (std::size_t i = loads.size(); i-- > 0;) rest[i] = rest[i + 1] + loads[order[i]];

  std::vector<double> pi(loads.size(), 0.0);
  std::size_t capped = 0;
  const auto left = [&] { return static_cast<double>(top_k) - static_cast<double>(capped); };
  while (left() > 0 && left() * (loads[order[capped]] / rest[capped]) >= kCertain) {
    pi[order[capped++]] = 1;
  }
  if (left() == 0) return pi;
  for (std::size_t i = capped; i < loads.size(); ++i) {
    pi[order[i]] = left() * (loads[order[i]] / rest[capped]);
  }
  return pi;
}

ExpertSampler::ExpertSampler(std::span<const double> loads, int top_k)
    : top_k_(static_cast<std::size_t>(top_k)), weights_(loads.size(), 0.0) {
  const std::vector<double> pi = inclusion_probabilities(loads, top_k);
  for (std::size_t e = 0; e < pi.size(); ++e) {
    if (pi[e] == 1) always_.push_back(static_cast<std::int32_t>(e));
  }
  std::vector<std::size_t> drawn;
  std::vector<double> target;
  for (std::size_t e = 0; e < pi.size(); ++e) {
    if (pi[e] == 0 || pi[e] == 1) continue;
    drawn.push_back(e);
    target.push_back(pi[e]);
  }
  const std::size_t picks = top_k_ - always_.size();
  const std::vector<double> weights = picks > 1 ? race_weights(target, picks) : target;
  for (std::size_t i = 0; i < drawn.size(); ++i) weights_[drawn[i]] = weights[i];
  build_table();
}

std::vector<double> ExpertSampler::rates() const {
  std::vector<double> rates = weights_;
  for (const std::int32_t expert : always_) {
    rates[static_cast<std::size_t>(expert)] = std::numeric_limits<double>::infinity();
  }
  return rates;
}

void ExpertSampler::build_table() {
  const double total = std::accumulate(weights_.begin(), weights_.end(), 0.0);
  std::vector<double> height;
  for (std::size_t e = 0; e < weights_.size(); ++e) {
    if (weights_[e] == 0) continue;
    const auto expert = static_cast<std::int32_t>(e);
    table_.push_back({std::numeric_limits<std::uint64_t>::max(), expert, expert});
    height.push_back(weights_[e] / total);
  }
  std::vector<std::size_t> low, high;
  for (std::size_t i = 0; i < height.size(); ++i) {
    height[i] *= static_cast<double>(height.size());
    (height[i] < 1 ? low : high).push_back(i);
  }
  while (!low.empty() && !high.empty()) {
    const std::size_t under = low.back(), over = high.back();
    low.pop_back();
    table_[under].keep_up_to = word_of(height[under]);
    table_[under].alias = table_[over].kept;
    height[over] -= 1 - height[under];
    if (height[over] < 1) {
      high.pop_back();
      low.push_back(over);
    }
  }
}

// One word gives both the column (high word of the product) and the coin (low word).
std::int32_t ExpertSampler::draw_one(std::uint64_t bits) const {
  const auto product = static_cast<unsigned __int128>(bits) * table_.size();
  const Column& column = table_[static_cast<std::size_t>(product >> 64)];
  return static_cast<std::uint64_t>(product) <= column.keep_up_to ? column.kept : column.alias;
}

void ExpertSampler::draw(const RandomStream& stream, std::span<std::int32_t> experts) const {
  EPS_EXPECT(experts.size() == top_k_, "room for another number of experts than top_k");
  std::copy(always_.begin(), always_.end(), experts.begin());
  std::uint64_t next = 0;
  for (std::size_t drawn = always_.size(); drawn < top_k_; ++drawn) {
    int tries = 0;
    do {
      experts[drawn] = draw_one(stream.bits(next++));
    } while (contains(experts.first(drawn), experts[drawn]) && ++tries < kMaxTries);
    if (tries == kMaxTries) return finish_exactly(stream, next, drawn, experts);
  }
}

void ExpertSampler::finish_exactly(const RandomStream& stream, std::uint64_t next,
                                   std::size_t num_drawn, std::span<std::int32_t> experts) const {
  std::vector<double> weights = weights_;
  for (std::size_t i = 0; i < num_drawn; ++i) weights[static_cast<std::size_t>(experts[i])] = 0;
  for (std::size_t i = num_drawn; i < experts.size(); ++i) {
    double left = stream.uniform(next++) * std::accumulate(weights.begin(), weights.end(), 0.0);
    std::size_t choice = weights.size();
    // Rounding may carry `left` past the end; then the last expert that may be drawn is taken.
    for (std::size_t e = 0; e < weights.size() && (choice == weights.size() || left >= 0); ++e) {
      if (weights[e] == 0) continue;
      choice = e;
      left -= weights[e];
    }
    experts[i] = static_cast<std::int32_t>(choice);
    weights[choice] = 0;
  }
}

}  // namespace epsweep
