#include "report/compare_sides.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "report/record_access.h"
#include "report/run_times.h"

namespace epsweep {
namespace {

constexpr std::size_t kMostListed = 8;
constexpr std::size_t kLongestValue = 60;

std::string hint(const std::string& word, const std::vector<std::string>& candidates) {
  const std::string near = nearest(word, candidates);
  return near.empty() ? "" : fmt::format("; nearest: '{}'", near);
}

// Not in the middle of a character.
std::string cut(const std::string& text) {
  std::size_t end = kLongestValue;
  while ((static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

bool matches(const Json& record, const AxisChoice& choice) {
  if (axis_text(record, choice.axis) == choice.value) return true;
  return choice.axis == "routing" &&
         find_text(record, "point.routing.distribution") == choice.value;
}

void expect_axes(const CompareSide& side) {
  const std::set<std::string>& axes = side.axes;
  std::set<std::string> seen;
  for (const AxisChoice& choice : side.choices) {
    if (!axes.contains(choice.axis)) {
      throw ConfigError(fmt::format("{} {}: points of {} have no axis '{}'{}", side.name,
                                    choice.axis, side.run->dir, choice.axis,
                                    hint(choice.axis, {axes.begin(), axes.end()})));
    }
    if (!seen.insert(choice.axis).second) {
      throw ConfigError(fmt::format("{}: {} is chosen twice", side.name, choice.axis));
    }
  }
}

}  // namespace

AxisChoice parse_axis_choice(const std::string& option, const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    throw ConfigError(
        fmt::format("{} {}: expected KEY=VALUE, such as grouped_gemm=loop", option, text));
  }
  return {.axis = text.substr(0, equals), .value = text.substr(equals + 1)};
}

std::string CompareSide::text() const {
  std::vector<std::string> chosen;
  for (const AxisChoice& choice : choices) chosen.push_back(choice.axis + " " + choice.value);
  return chosen.empty() ? run->dir : fmt::format("{} with {}", run->dir, join(chosen));
}

std::set<std::string> axes_of(const Json& record) {
  std::set<std::string> axes;
  const Json* point = find_value(record, "point");
  if (point == nullptr || !point->is_object()) return axes;
  for (const auto& [key, value] : point->items()) axes.insert(key);
  axes.erase("index");
  return axes;
}

CompareSide choose_side(const std::string& name, const RunData& run,
                        std::vector<AxisChoice> choices) {
  if (run.points.empty()) {
    throw ConfigError(fmt::format("{} ({}): the run has no points", name, run.dir));
  }
  CompareSide side{
      .name = name, .run = &run, .choices = std::move(choices), .axes = {}, .records = {}};
  for (const Json& record : run.points) {
    if (!record.at("point").is_object()) {
      throw ConfigError(fmt::format("{}: 'point' is no object", record_place(run.dir, record)));
    }
    side.axes.merge(axes_of(record));
    side.records.push_back(&record);
  }
  expect_axes(side);
  for (const AxisChoice& choice : side.choices) {
    std::vector<const Json*> left;
    std::ranges::copy_if(side.records, std::back_inserter(left),
                         [&](const Json* record) { return matches(*record, choice); });
    if (left.empty()) {
      const std::vector<std::string> values = axis_texts(side.records, choice.axis);
      throw ConfigError(fmt::format("{} {}={}: leaves no point of {}; {} is {}{}", name,
                                    choice.axis, choice.value, run.dir, choice.axis,
                                    some_of(values), hint(choice.value, values)));
    }
    side.records = std::move(left);
  }
  return side;
}

std::string axis_text(const Json& record, const std::string& axis) {
  const auto or_none = [](const std::string& text) { return text.empty() ? "none" : text; };
  if (axis == "routing") return or_none(routing_text(record));
  if (axis == "model" || axis == "hardware") {
    const std::string name = find_text(record, "point." + axis + ".name");
    if (!name.empty()) return name;
  }
  return or_none(plain_text(find_value(record, "point." + axis)));
}

std::string axis_change(const Json& a, const Json& b, const std::string& axis) {
  const std::string mine = axis_text(a, axis), theirs = axis_text(b, axis);
  if (axis_key(a, axis) == axis_key(b, axis)) return some_of({mine});
  const Json *of_a = find_value(a, "point." + axis), *of_b = find_value(b, "point." + axis);
  const bool objects = of_a != nullptr && of_b != nullptr && of_a->is_object() && of_b->is_object();
  const bool told_by_text = axis == "routing" || mine.front() != '{';
  if (!objects || (told_by_text && mine != theirs)) {
    return fmt::format("{} -> {}", some_of({mine}), some_of({theirs}));
  }
  const SortedJson flat_a = SortedJson(*of_a).flatten(), flat_b = SortedJson(*of_b).flatten();
  SortedJson all = flat_a;
  all.update(flat_b);
  std::vector<std::string> parts;
  for (const auto& [key, value] : all.items()) {
    const std::string x = flat_a.value(key, SortedJson()).dump();
    const std::string y = flat_b.value(key, SortedJson()).dump();
    if (x != y) parts.push_back(fmt::format("{} {} -> {}", key, x, y));
  }
  return some_of(parts);
}

std::string axis_key(const Json& record, const std::string& axis) {
  const Json* value = find_value(record, "point." + axis);
  return value == nullptr ? "null" : SortedJson(*value).dump();
}

std::vector<std::string> axis_texts(const std::vector<const Json*>& records,
                                    const std::string& axis) {
  std::vector<std::string> values;
  for (const Json* record : records) {
    const std::string text = axis_text(*record, axis);
    if (std::ranges::find(values, text) == values.end()) values.push_back(text);
  }
  return values;
}

std::string some_of(const std::vector<std::string>& values) {
  std::vector<std::string> shown;
  for (const std::string& value : values) {
    if (shown.size() == kMostListed) {
      shown.push_back(fmt::format("and {} more", values.size() - kMostListed));
      break;
    }
    shown.push_back(value.size() > kLongestValue ? cut(value) : value);
  }
  return join(shown);
}

std::string short_point_label(const Json& record) {
  std::vector<std::string> parts;
  const auto add = [&parts](const std::string& text) {
    if (!text.empty()) parts.push_back(text);
  };
  add("EP" + plain_text(find_value(record, "point.ep_size")));
  for (const char* axis : {"concurrency", "tokens"}) {
    add(plain_text(find_value(record, std::string("point.") + axis)));
  }
  add(routing_text(record));
  std::string placement = placement_text(record);
  if (const auto slots = find_number(record, "point.redundant_slots"); slots && *slots > 0) {
    placement += fmt::format("+{:.0f}", *slots);
  }
  add(placement);
  add(find_text(record, "point.transport"));
  add(find_text(record, "point.grouped_gemm"));
  return join(parts, " ");
}

}  // namespace epsweep
