#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "report/text_table.h"
#include "report/why.h"

namespace epsweep {
namespace {

constexpr int kBarCells = 14;  // to each side
// Shares of the larger period below which a term is not worth a line.
constexpr double kLeastShare = 0.002;
// The same where repeats show no difference, so that nobody reads much into them.
constexpr double kLeastShareOfNoDifference = 0.05;

std::string bar(double value, double largest) {
  const auto cells =
      largest > 0 ? static_cast<int>(std::lround(std::abs(value) / largest * kBarCells)) : 0;
  const std::string filled(static_cast<std::size_t>(cells), '#');
  const std::string before = value < 0 ? filled : "", after = value < 0 ? "" : filled;
  return fmt::format("{:>{}}|{:<{}}", before, kBarCells, after, kBarCells);
}

std::string interval_text(const std::optional<Interval>& interval) {
  return interval ? fmt::format("[{:+.1f}, {:+.1f}]", interval->low, interval->high) : "";
}

// What of a term is due to a higher C, and what to the wider EP.
std::string effects_of(const Attribution& attribution, std::size_t cause) {
  if (attribution.effects->concurrency.measured_us() == 0) return "";
  return fmt::format("  C {:+.1f}, width {:+.1f}", attribution.effects->concurrency.values()[cause],
                     attribution.effects->width.values()[cause]);
}

std::string path_text(const char* name, const std::optional<Path>& path) {
  if (!path) return "";
  return fmt::format("{}: concurrency {:+.1f}, width {:+.1f}", name,
                     path->concurrency.measured_us(), path->width.measured_us());
}

std::string effects_text(const EpPair& pair, const Attribution& attribution) {
  if (pair.a.tokens_global == pair.b.tokens_global) return "";
  if (!attribution.effects)
    return "    concurrency and width are not told apart: no bridge point\n";
  const std::string orders =
      fmt::format("{}{}{}", path_text("wider first", attribution.width_first),
                  attribution.width_first && attribution.concurrency_first ? "; " : "",
                  path_text("higher C first", attribution.concurrency_first));
  return fmt::format("    concurrency {:+.1f} {} + width {:+.1f} {} ({})\n",
                     attribution.effects->concurrency.measured_us(),
                     interval_text(attribution.concurrency_interval),
                     attribution.effects->width.measured_us(),
                     interval_text(attribution.width_interval), orders);
}

std::string terms_text(const Attribution& attribution, double least_share, double period_a_us,
                       double period_b_us) {
  const Terms& terms = attribution.total;
  double largest = 0;
  for (const double value : terms.values()) largest = std::max(largest, std::abs(value));
  const auto factors = factors_of(terms, period_a_us, period_b_us);
  std::string text;
  for (std::size_t i = 0; i < kNumCauses; ++i) {
    const double us = terms.values()[i];
    const bool is_residual = static_cast<Cause>(i) == Cause::residual;
    if (!is_residual && std::abs(us) < least_share * std::max(period_a_us, period_b_us)) continue;
    // Of medians over repeats, so it need not lie among the repeats' own.
    const bool has_interval = attribution.total_intervals && !is_residual;
    text += fmt::format("    {:<18} {:>+10.1f}  {:<22} {} x{:.3f}{}\n", kCauseNames[i], us,
                        has_interval ? interval_text((*attribution.total_intervals)[i]) : "",
                        bar(us, largest), factors[i],
                        attribution.effects ? effects_of(attribution, i) : "");
  }
  return text;
}

std::string pair_text(const EpPair& pair) {
  const Why why = explain(pair);
  // The repeats' own verdict says the same.
  if (why.difference && !why.attribution) return "";
  std::string text =
      fmt::format("\n  EP{} -> EP{}, {}\n", pair.a.ep_size, pair.b.ep_size, pair.held);
  if (why.attribution) {
    const double a_us = nearest_rank(why.a.layer_us, 0.5), b_us = nearest_rank(why.b.layer_us, 0.5);
    text += fmt::format("    layer {} -> {} us: {:+.1f}\n", short_number(a_us), short_number(b_us),
                        why.attribution->total.measured_us());
    text +=
        effects_text(pair, *why.attribution) +
        terms_text(*why.attribution,
                   why.verdict == PairVerdict::difference ? kLeastShare : kLeastShareOfNoDifference,
                   a_us, b_us);
  }
  return text + "    " + why.text + "\n";
}

std::string crossings_text(const std::vector<EpPair>& pairs) {
  std::string text;
  for (const PairCrossings& ladder : pair_crossings(pairs)) {
    const EpPair& pair = *ladder.first;
    for (const Crossing& crossing : ladder.crossings) {
      text +=
          fmt::format("  EP{} {} EP{} above {} and at most at {} tokens{} ({}{})\n", pair.b.ep_size,
                      crossing.kind == CrossingKind::starts_to_win ? "starts to win over"
                                                                   : "stops winning over",
                      pair.a.ep_size, crossing.after, crossing.by,
                      crossing.estimate ? fmt::format(", about {:.0f}", *crossing.estimate) : "",
                      pair.mode, pair.series);
    }
  }
  return text.empty() ? ""
                      : "\nCrossovers (layer p50; loads whose repeats show a difference)\n" + text;
}

}  // namespace

std::string why_text(const std::vector<EpPair>& pairs) {
  std::string text;
  std::string held;
  int smallest = 0;
  for (const EpPair& pair : pairs) {
    if (pair.held != held) {
      held = pair.held;
      smallest = pair.a.ep_size;
    }
    if (pair.a.ep_size == smallest) text += pair_text(pair);
  }
  if (text.empty()) return "";
  return "\nWhy (us per layer, later minus earlier EP size, of medians over repeats [their "
         "spread]; "
         "terms add up to the difference; x: factor on tokens/s per rank at the same tokens)\n" +
         text + crossings_text(pairs);
}

}  // namespace epsweep
