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

std::string line(std::string_view name, double us, const std::string& interval, double largest,
                 const std::string& factor) {
  return fmt::format("    {:<18} {:>+10.1f}  {:<22} {}  {}\n", name, us, interval, bar(us, largest),
                     factor);
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

std::string terms_text(const Attribution& attribution, double period_a_us, double period_b_us) {
  const Terms& terms = attribution.total;
  double largest = 0;
  for (const double value : terms.values()) largest = std::max(largest, std::abs(value));
  const auto factors = factors_of(terms, period_a_us, period_b_us);
  std::string text;
  for (std::size_t i = 0; i < kNumCauses; ++i) {
    const double us = terms.values()[i];
    const bool is_residual = static_cast<Cause>(i) == Cause::residual;
    if (!is_residual && std::abs(us) < kLeastShare * std::max(period_a_us, period_b_us)) continue;
    text +=
        line(kCauseNames[i], us,
             attribution.total_intervals ? interval_text((*attribution.total_intervals)[i]) : "",
             largest, fmt::format("x{:.3f}", factors[i]));
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
    text += effects_text(pair, *why.attribution) + terms_text(*why.attribution, a_us, b_us);
  }
  return text + "    " + why.text + "\n";
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
         text;
}

}  // namespace epsweep
