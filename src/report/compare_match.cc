#include "report/compare_match.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "report/record_access.h"

namespace epsweep {
namespace {

// What is no part of an experiment, or is compared apart.
constexpr const char* kNeverMatched[] = {"index", "repeat", "attempt", "hardware"};

// Axes whose value follows from another one's, so that whoever compares that one compares them too.
struct Companions {
  const char* axis;
  std::vector<const char*> follow;
};
const std::vector<Companions>& companions() {
  static const std::vector<Companions> all = {
      {"placement", {"placement_map", "redundant_slots", "fit_on"}},
      {"transport", {"capacity_factor"}},
      {"tokens", {"tokens_global"}},
      {"tokens_global", {"tokens"}}};
  return all;
}

std::set<std::string> matched_axes(const CompareSide& a, const CompareSide& b,
                                   const std::set<std::string>& free) {
  std::set<std::string> axes;
  std::ranges::set_intersection(a.axes, b.axes, std::inserter(axes, axes.end()));
  for (const char* axis : kNeverMatched) axes.erase(axis);
  axes.erase(free.contains("concurrency") ? "tokens" : "tokens_global");
  for (const std::string& axis : free) axes.erase(axis);
  return axes;
}

std::vector<std::string> unknown_axes(const CompareSide& a, const CompareSide& b) {
  std::vector<std::string> axes;
  std::ranges::set_symmetric_difference(a.axes, b.axes, std::back_inserter(axes));
  return axes;
}

// Records of one key, those with times apart.
struct Bucket {
  std::vector<const Json*> rows, others;
};
struct Buckets {
  std::vector<std::string> order;
  std::map<std::string, Bucket> by_key;
};

std::string key_of(const Json& record, const std::set<std::string>& axes) {
  std::string key;
  for (const std::string& axis : axes) key += axis + " " + axis_key(record, axis) + "\n";
  return key;
}

Buckets bucketed(const CompareSide& side, const std::set<std::string>& axes) {
  Buckets buckets;
  for (const Json* record : side.records) {
    const std::string key = key_of(*record, axes);
    if (!buckets.by_key.contains(key)) buckets.order.push_back(key);
    Bucket& bucket = buckets.by_key[key];
    (has_row(*record) ? bucket.rows : bucket.others).push_back(record);
  }
  return buckets;
}

// Two lines of one point of a plan would count as repeats.
void expect_each_once(const CompareSide& side) {
  std::set<std::string> seen;
  for (const Json* record : side.records) {
    const std::string index = plain_text(find_value(*record, "index"));
    if (seen.insert(index).second) continue;
    throw ConfigError(
        fmt::format("{}/points.jsonl: point {} stands there twice", side.run->dir, index));
  }
}

bool is_follower(const std::string& axis) {
  return std::ranges::any_of(companions(), [&](const Companions& one) {
    return std::ranges::find(one.follow, axis) != one.follow.end();
  });
}

// Those that follow from others come last.
std::vector<std::string> by_cause(const std::set<std::string>& axes) {
  std::vector<std::string> ordered(axes.begin(), axes.end());
  std::ranges::stable_partition(ordered, [](const auto& axis) { return !is_follower(axis); });
  return ordered;
}

void expect_one_point(const CompareSide& side, const std::vector<const Json*>& rows) {
  std::set<std::string> axes = side.axes;
  axes.erase("repeat");
  axes.erase("attempt");
  for (const std::string& axis : by_cause(axes)) {
    const auto other = std::ranges::find_if(rows, [&](const Json* row) {
      return axis_key(*row, axis) != axis_key(*rows.front(), axis);
    });
    if (other == rows.end()) continue;
    const std::string first = axis_text(*rows.front(), axis);
    throw ConfigError(fmt::format(
        "{} has more than one point for one of the other side ({}): with {} {} and {}; choose "
        "with --{} {}={}",
        side.name, short_point_label(*rows.front()), axis, first, axis_text(**other, axis),
        side.name == "A" ? "a" : "b", axis, first));
  }
}

std::string end_of(const Json& record) {
  const std::string state = find_text(record, "state"), reason = find_text(record, "reason");
  return reason.empty() ? state : state + ": " + reason;
}

// One entry for repeats that ended alike.
void add_lone(const std::vector<const Json*>& records, const std::string& why,
              std::vector<LonePoint>& lone) {
  for (const Json* record : records) {
    const std::string end = why.empty() ? end_of(*record) : why;
    const bool repeats_last = record != records.front() && lone.back().why == end;
    if (repeats_last) {
      ++lone.back().repeats;
    } else {
      lone.push_back({.record = record, .repeats = 1, .why = end});
    }
  }
}

// Why rows of one side have no partner in `other`.
std::string why_alone(const CompareSide& other, const Bucket* bucket) {
  if (bucket == nullptr) return "no such point in " + other.name;
  return fmt::format("{}: {}", other.name, end_of(*bucket->others.front()));
}

const Bucket* find_bucket(const Buckets& buckets, const std::string& key) {
  const auto found = buckets.by_key.find(key);
  return found == buckets.by_key.end() ? nullptr : &found->second;
}

}  // namespace

std::set<std::string> free_axes(const CompareSide& a, const CompareSide& b,
                                const std::vector<std::string>& across) {
  std::set<std::string> known = a.axes;
  known.insert(b.axes.begin(), b.axes.end());
  std::set<std::string> free;
  for (const std::string& axis : across) {
    if (!known.contains(axis)) {
      const std::string near = nearest(axis, {known.begin(), known.end()});
      throw ConfigError(fmt::format("--across {}: points have no such axis{}", axis,
                                    near.empty() ? "" : fmt::format("; nearest: '{}'", near)));
    }
    free.insert(axis);
  }
  const auto same_in = [](const CompareSide& side, const AxisChoice& choice) {
    return std::ranges::any_of(side.choices, [&](const AxisChoice& other) {
      return other.axis == choice.axis && other.value == choice.value;
    });
  };
  for (const AxisChoice& choice : a.choices) {
    if (!same_in(b, choice)) free.insert(choice.axis);
  }
  for (const AxisChoice& choice : b.choices) {
    if (!same_in(a, choice)) free.insert(choice.axis);
  }
  for (const Companions& one : companions()) {
    if (free.contains(one.axis)) free.insert(one.follow.begin(), one.follow.end());
  }
  return free;
}

Matching match_points(const CompareSide& a, const CompareSide& b,
                      const std::set<std::string>& free) {
  expect_each_once(a);
  expect_each_once(b);
  const std::set<std::string> axes = matched_axes(a, b, free);
  const Buckets of_a = bucketed(a, axes), of_b = bucketed(b, axes);
  Matching matching;
  matching.unknown_axes = unknown_axes(a, b);
  for (const std::string& key : of_a.order) {
    const Bucket& mine = of_a.by_key.at(key);
    const Bucket* theirs = find_bucket(of_b, key);
    add_lone(mine.others, "", matching.only_in_a);
    if (mine.rows.empty()) continue;
    if (theirs == nullptr || theirs->rows.empty()) {
      add_lone(mine.rows, why_alone(b, theirs), matching.only_in_a);
      continue;
    }
    expect_one_point(a, mine.rows);
    expect_one_point(b, theirs->rows);
    matching.pairs.push_back({.a = mine.rows, .b = theirs->rows});
  }
  for (const std::string& key : of_b.order) {
    const Bucket& mine = of_b.by_key.at(key);
    const Bucket* theirs = find_bucket(of_a, key);
    add_lone(mine.others, "", matching.only_in_b);
    if (mine.rows.empty() || (theirs != nullptr && !theirs->rows.empty())) continue;
    add_lone(mine.rows, why_alone(a, theirs), matching.only_in_b);
  }
  return matching;
}

bool is_apart(const CompareSide& a, const CompareSide& b, const std::string& axis) {
  std::set<std::string> of_a;
  for (const Json* record : a.records) of_a.insert(axis_key(*record, axis));
  return std::ranges::none_of(
      b.records, [&](const Json* record) { return of_a.contains(axis_key(*record, axis)); });
}

std::vector<std::string> axes_apart(const CompareSide& a, const CompareSide& b,
                                    const std::set<std::string>& free) {
  std::vector<std::string> apart;
  std::set<std::string> told;
  for (const std::string& axis : by_cause(matched_axes(a, b, free))) {
    if (told.contains(axis) || !is_apart(a, b, axis)) continue;
    for (const Companions& one : companions()) {
      if (one.axis == axis) told.insert(one.follow.begin(), one.follow.end());
    }
    const std::vector<std::string> of_a = axis_texts(a.records, axis);
    const std::vector<std::string> of_b = axis_texts(b.records, axis);
    const bool single = of_a.size() == 1 && of_b.size() == 1;
    apart.push_back(single
                        ? fmt::format("{} ({})", axis,
                                      axis_change(*a.records.front(), *b.records.front(), axis))
                        : fmt::format("{} ({} in A, {} in B)", axis, some_of(of_a), some_of(of_b)));
  }
  return apart;
}

}  // namespace epsweep
