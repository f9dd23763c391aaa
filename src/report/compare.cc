#include "report/compare.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace epsweep {
namespace {

std::string nearest_of(const std::string& word, const std::vector<std::string>& names) {
  const std::string near = nearest(word, names);
  return near.empty() ? "one of " + join(names) : fmt::format("nearest: '{}'", near);
}

void expect_known(const std::vector<std::string>& allow) {
  for (const std::string& field : allow) {
    if (field == "schema_version") {
      throw ConfigError(
          "--allow schema_version: records of another major may mean other things by the same "
          "keys; run one of them again, or use a build that reads both");
    }
    if (std::ranges::find(kComparedFields, field) != kComparedFields.end()) continue;
    throw ConfigError(fmt::format("--allow {}: no field that is checked; {}", field,
                                  nearest_of(field, kComparedFields)));
  }
}

bool is_allowed(const CompareRequest& request, const std::string& field) {
  return std::ranges::find(request.allow, field) != request.allow.end();
}

void refuse(const std::vector<FieldDifference>& differences) {
  std::vector<std::string> texts, options;
  for (const FieldDifference& one : differences) {
    texts.push_back(fmt::format("{}: {}", one.field, one.text));
    options.push_back("--allow " + one.field);
  }
  throw ConfigError(
      fmt::format("A and B are not comparable: {}; {} compares them all the same and says so",
                  join(texts, "; "), join(options, " ")));
}

[[noreturn]] void refuse_without_pairs(const Comparison& comparison) {
  const std::vector<std::string> apart = axes_apart(comparison.a, comparison.b, comparison.free);
  if (!apart.empty()) {
    throw ConfigError(fmt::format(
        "no point of A has a partner in B: they have no value in common of {}; choose with --a "
        "and --b KEY=VALUE, or let them differ with --across KEY",
        join(apart)));
  }
  const LonePoint& first = comparison.only_in_a.front();
  throw ConfigError(fmt::format("no point of A has a partner in B; {} of A: {}",
                                short_point_label(*first.record), first.why));
}

}  // namespace

Comparison compare_runs(const RunData& a, const RunData& b, const CompareRequest& request) {
  expect_known(request.allow);
  Comparison comparison;
  comparison.a = choose_side("A", a, request.a);
  comparison.b = choose_side("B", b, request.b);
  const std::set<std::string> chosen = free_axes(comparison.a, comparison.b, request.across);
  comparison.free = chosen;
  for (const char* axis : {"concurrency", "dtype", "model"}) {
    if (is_allowed(request, axis) && is_apart(comparison.a, comparison.b, axis)) {
      comparison.free.insert(axis);
    }
  }
  Matching matching = match_points(comparison.a, comparison.b, comparison.free);
  std::vector<FieldDifference> refused;
  for (FieldDifference& one : field_differences(comparison.a, comparison.b, matching, chosen)) {
    (is_allowed(request, one.field) ? comparison.allowed : refused).push_back(std::move(one));
  }
  if (!refused.empty()) refuse(refused);
  comparison.run_differences = run_differences(a, b);
  comparison.unknown_axes = std::move(matching.unknown_axes);
  comparison.only_in_a = std::move(matching.only_in_a);
  comparison.only_in_b = std::move(matching.only_in_b);
  if (matching.pairs.empty()) refuse_without_pairs(comparison);
  for (MatchedPair& pair : matching.pairs) {
    std::vector<QuantityChange> changes = compare_quantities(pair);
    comparison.pairs.push_back({.match = std::move(pair), .changes = std::move(changes)});
  }
  return comparison;
}

std::vector<NamedChange> outcomes_with(const Comparison& comparison, Change change) {
  std::vector<NamedChange> found;
  for (const ComparedPair& pair : comparison.pairs) {
    for (const QuantityChange& quantity : pair.changes) {
      if (quantity.rank != Rank::outcome || quantity.change != change) continue;
      found.push_back({.pair = &pair, .quantity = &quantity});
    }
  }
  return found;
}

RegressionLimit parse_regression_limit(const std::string& text, const std::string& few_repeats) {
  constexpr std::string_view kPrefix = "regression:";
  const auto refuse_text = [&text] {
    throw ConfigError(
        fmt::format("--fail-on {}: expected regression:PERCENT%, such as regression:5%", text));
  };
  if (!text.starts_with(kPrefix) || !text.ends_with('%')) refuse_text();
  const char* const begin = text.data() + kPrefix.size();
  const char* const end = text.data() + text.size() - 1;
  double percent = 0;
  const auto [stop, error] = std::from_chars(begin, end, percent);
  if (error != std::errc() || stop != end || !(percent >= 0) || percent > 1e6) refuse_text();
  const auto name = std::ranges::find(kFewRepeatsNames, few_repeats);
  if (name == kFewRepeatsNames.end()) {
    throw ConfigError(fmt::format("--few-repeats {}: {}", few_repeats,
                                  nearest_of(few_repeats, kFewRepeatsNames)));
  }
  return {.share = percent / 100,
          .few_repeats = static_cast<FewRepeats>(name - kFewRepeatsNames.begin())};
}

RegressionCheck check_regressions(const Comparison& comparison, const RegressionLimit& limit) {
  const auto beyond = [&limit](const NamedChange& one) {
    // Of nothing there is no share, and no limit that something is within.
    return one.quantity->worse_by().value_or(limit.share + 1) > limit.share;
  };
  return {.limit = limit,
          .shown = static_cast<int>(
              std::ranges::count_if(outcomes_with(comparison, Change::worse), beyond)),
          .too_few = static_cast<int>(
              std::ranges::count_if(outcomes_with(comparison, Change::too_few), beyond))};
}

}  // namespace epsweep
