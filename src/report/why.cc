#include "report/why.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "report/record_access.h"
#include "report/text_table.h"

namespace epsweep {
namespace {

SideNumbers numbers_of(const PairSide& side) {
  SideNumbers numbers;
  for (const Json* record : side.records) {
    const auto layer = find_number(*record, "layer.slowest_us.p50");
    const auto rate = find_number(*record, "metrics.tokens_per_s_per_rank");
    if (!layer || !rate) continue;
    numbers.layer_us.push_back(*layer);
    numbers.tokens_per_s_per_rank.push_back(*rate);
    numbers.mean_rows_per_expert = find_number(*record, "rows_per_expert.mean").value_or(0);
  }
  return numbers;
}

// Of two measured sides.
std::optional<Difference> difference_of(const SideNumbers& a, const SideNumbers& b) {
  if (a.layer_us.empty() || b.layer_us.empty()) return std::nullopt;
  return difference_between(a.layer_us, b.layer_us);
}

std::string name_of(const PairSide& side) {
  return fmt::format("EP{}", side.ep_size);
}

// "512.3 us [510.0, 515.1]"
std::string with_interval(const std::vector<double>& values, const char* unit) {
  const Interval interval = *repeats_interval(values);
  const std::string median = short_number(nearest_rank(values, 0.5)) + unit;
  if (values.size() < 2) return median;
  return fmt::format("{} [{}, {}]", median, short_number(interval.low),
                     short_number(interval.high));
}

// A cause by its group, or the concurrency.
struct Named {
  std::string name;
  double us = 0;
  std::optional<Interval> interval;
};

std::vector<Named> named_causes(const EpPair& pair, const Attribution& attribution) {
  std::vector<Named> causes;
  const GroupValues values = by_group(attribution.width_or_total());
  for (std::size_t g = 0; g < values.size(); ++g) {
    causes.push_back({.name = std::string(kCauseGroupNames[g]),
                      .us = values[g],
                      .interval = attribution.group_intervals
                                      ? std::optional((*attribution.group_intervals)[g])
                                      : std::nullopt});
  }
  if (attribution.effects && pair.a.tokens_global != pair.b.tokens_global) {
    causes.push_back({.name = fmt::format("C {} -> {}", pair.a.tokens_global, pair.b.tokens_global),
                      .us = attribution.effects->concurrency.measured_us(),
                      .interval = attribution.concurrency_interval});
  }
  return causes;
}

std::string cause_text(const char* what, const Named& cause) {
  std::string text = fmt::format("{}: {} ({:+.1f} us per layer", what, cause.name, cause.us);
  if (cause.interval) {
    text += fmt::format(" [{:+.1f}, {:+.1f}]", cause.interval->low, cause.interval->high);
  }
  return text + ")";
}

// Of the longer layer: less is nobody's reason.
constexpr double kLeastShare = 0.005;

std::string causes_sentence(const EpPair& pair, const Why& why) {
  const Attribution& attribution = *why.attribution;
  const std::vector<Named> causes = named_causes(pair, attribution);
  const auto [gain, loss] = std::ranges::minmax(causes, {}, &Named::us);
  const double residual_us = attribution.total.residual();
  const double least_us =
      kLeastShare * std::max(nearest_rank(why.a.layer_us, 0.5), nearest_rank(why.b.layer_us, 0.5));
  const auto told = [=](const Named& cause) {
    return std::abs(cause.us) >= least_us && is_told(cause.us, residual_us, cause.interval);
  };
  std::vector<std::string> parts;
  if (gain.us < 0 && told(gain)) parts.push_back(cause_text("Largest gain", gain));
  if (loss.us > 0 && told(loss))
    parts.push_back(cause_text(parts.empty() ? "Largest loss" : "largest loss", loss));
  const std::string note =
      attribution.effects
          ? ""
          : "; no point bridges the two, so a higher C and the wider EP are not told "
            "apart";
  if (!parts.empty()) return fmt::format("{}{}.", fmt::join(parts, "; "), note);
  const Named& largest = -gain.us > loss.us ? gain : loss;
  return fmt::format(
      "The cause cannot be told: the largest term ({}, {:+.1f} us) does not exceed the residual "
      "({:+.1f} us) and the spread{}.",
      largest.name, largest.us, residual_us, note);
}

std::string numbers_sentence(const EpPair& pair, const Why& why) {
  const double factor = nearest_rank(why.b.tokens_per_s_per_rank, 0.5) /
                        nearest_rank(why.a.tokens_per_s_per_rank, 0.5);
  return fmt::format(
      "{} against {} per layer, {} against {} tokens/s per rank ({:.2f}x), M {} -> {}, C {} -> {}",
      with_interval(why.b.layer_us, " us"), with_interval(why.a.layer_us, " us"),
      with_interval(why.b.tokens_per_s_per_rank, ""),
      with_interval(why.a.tokens_per_s_per_rank, ""), factor,
      short_number(why.a.mean_rows_per_expert), short_number(why.b.mean_rows_per_expert),
      pair.a.tokens_global, pair.b.tokens_global);
}

std::string shown_sentence(const EpPair& pair, const Why& why) {
  const Difference& difference = *why.difference;
  const std::string names = fmt::format("{} against {}: ", name_of(pair.b), name_of(pair.a));
  const double percent = (difference.ratio - 1) * 100;
  switch (difference.shown) {
    case Shown::nothing:
      return names + "no difference shown: ";
    case Shown::too_few:
      return names + "no difference shown, more repeats are needed: ";
    case Shown::faster:
      return names + fmt::format("{:.1f} % faster: ", -percent);
    case Shown::slower:
      break;
  }
  return names + fmt::format("{:.1f} % slower: ", percent);
}

std::string unable_text(const EpPair& pair, PairVerdict verdict) {
  const auto reason = [](const PairSide& side) {
    return fmt::format("{} was not measured ({})", name_of(side), side.why_not);
  };
  if (verdict == PairVerdict::neither) return reason(pair.a) + "; " + reason(pair.b) + ".";
  const bool narrow = verdict == PairVerdict::narrow_unable;
  const PairSide &unable = narrow ? pair.a : pair.b, &able = narrow ? pair.b : pair.a;
  const bool capacity = unable.why_not.find("_memory") != std::string::npos ||
                        unable.why_not.find("short") != std::string::npos;
  return fmt::format("{}. {} {}.", reason(unable), name_of(able),
                     capacity ? "wins on capacity, not speed" : "has nothing to be compared to");
}

PairVerdict verdict_of(const Why& why) {
  const bool a = !why.a.layer_us.empty(), b = !why.b.layer_us.empty();
  if (!a && !b) return PairVerdict::neither;
  if (!a) return PairVerdict::narrow_unable;
  if (!b) return PairVerdict::wide_unable;
  const Shown shown = why.difference->shown;
  return shown == Shown::faster || shown == Shown::slower ? PairVerdict::difference
                                                          : PairVerdict::nothing_shown;
}

}  // namespace

std::vector<PairCrossings> pair_crossings(const std::vector<EpPair>& pairs) {
  std::vector<PairCrossings> ladders;
  std::vector<std::vector<LoadVerdict>> loads;
  for (const EpPair& pair : pairs) {
    const auto same = [&pair](const PairCrossings& ladder) {
      const EpPair& first = *ladder.first;
      return first.series == pair.series && first.mode == pair.mode &&
             first.a.ep_size == pair.a.ep_size && first.b.ep_size == pair.b.ep_size;
    };
    const auto ladder = std::ranges::find_if(ladders, same);
    const auto at = static_cast<std::size_t>(ladder - ladders.begin());
    if (ladder == ladders.end()) {
      ladders.push_back({.first = &pair, .crossings = {}});
      loads.emplace_back();
    }
    const std::optional<Difference> difference =
        difference_of(numbers_of(pair.a), numbers_of(pair.b));
    if (!difference) continue;
    loads[at].push_back(
        {.tokens = pair.load, .shown = difference->shown, .ratio = difference->ratio});
  }
  for (std::size_t i = 0; i < ladders.size(); ++i) ladders[i].crossings = crossings(loads[i]);
  std::erase_if(ladders, [](const PairCrossings& ladder) { return ladder.crossings.empty(); });
  return ladders;
}

Why explain(const EpPair& pair) {
  Why why;
  why.a = numbers_of(pair.a);
  why.b = numbers_of(pair.b);
  why.difference = difference_of(why.a, why.b);
  why.verdict = verdict_of(why);
  if (!pair.a.breakdowns.empty() && !pair.b.breakdowns.empty()) {
    why.attribution = attribute(pair.corners());
  }
  if (!why.difference) {
    why.text = unable_text(pair, why.verdict);
    return why;
  }
  why.text = shown_sentence(pair, why) + numbers_sentence(pair, why) + ".";
  if (!why.attribution) return why;
  const std::string causes = causes_sentence(pair, why);
  why.text += why.verdict == PairVerdict::difference
                  ? " " + causes
                  : " No cause is named without a difference; the terms are what was seen.";
  return why;
}

}  // namespace epsweep
