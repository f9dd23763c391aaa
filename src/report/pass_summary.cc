#include "report/pass_summary.h"

#include <cmath>

#include <fmt/format.h>

#include "base/statistics.h"

namespace epsweep {
namespace {

// With fewer the first sample is half of what the p50 is made of.
constexpr std::size_t kSpikeMinSamples = 4;

std::optional<double> drift_of(std::span<const double> samples_s) {
  const std::size_t third = samples_s.size() / 3;
  const auto first = samples_s.first(third), last = samples_s.last(third);
  const auto early = median_interval(first), late = median_interval(last);
  if (!early.has_value() || !late.has_value() || early->overlaps(*late)) return std::nullopt;
  const double begin_s = nearest_rank(first, 0.5);
  if (begin_s <= 0) return std::nullopt;
  return nearest_rank(last, 0.5) / begin_s;
}

}  // namespace

PassSummary summarize_pass(PassFactsOfRanks facts, std::span<const double> samples_s) {
  PassSummary summary;
  summary.facts = std::move(facts);
  std::vector<double> quiet;
  for (std::size_t i = 0; i < samples_s.size(); ++i) {
    const bool disturbed = i < summary.facts.disturbed.size() && summary.facts.disturbed[i] > 0;
    if (!disturbed) quiet.push_back(samples_s[i]);
  }
  if (samples_s.empty()) return summary;
  summary.disturbed_share =
      1 - static_cast<double>(quiet.size()) / static_cast<double>(samples_s.size());
  if (!quiet.empty()) summary.undisturbed_p50_s = nearest_rank(quiet, 0.5);
  const double p50_s = nearest_rank(samples_s, 0.5);
  if (samples_s.size() >= kSpikeMinSamples && p50_s > 0) {
    summary.first_over_p50 = samples_s.front() / p50_s;
  }
  summary.drift = drift_of(samples_s);
  return summary;
}

std::vector<std::string> pass_warnings(const std::string& what, const PassSummary& pass,
                                       std::span<const double> samples_s) {
  std::vector<std::string> warnings;
  if (pass.first_over_p50.value_or(0) > kSpikeFactor) {
    warnings.push_back(
        fmt::format("{}: the first timed iteration took {:.1f} us per layer, {:.0f} times the p50: "
                    "more warm-up is needed; p50 is little affected, max and p99 are",
                    what, samples_s.front() * 1e6, *pass.first_over_p50));
  }
  if (pass.drift.has_value() && std::abs(*pass.drift - 1) > kDriftLimit) {
    warnings.push_back(
        fmt::format("{}: the last third of the iterations took {:+.0f} % against the first: "
                    "the machine changed meanwhile, or warm-up was too short",
                    what, (*pass.drift - 1) * 100));
  }
  return warnings;
}

}  // namespace epsweep
