#include "report/compare_fields.h"

#include <algorithm>
#include <functional>
#include <optional>

#include <fmt/format.h>

#include "base/stage.h"
#include "base/text.h"
#include "report/record_access.h"

namespace epsweep {
namespace {

using Differences = std::vector<FieldDifference>;

std::string in_both(const std::string& of_a, const std::string& of_b) {
  return fmt::format("{} in A, {} in B", of_a, of_b);
}

std::string listed(const std::set<std::string>& words, std::string_view separator) {
  return join(std::vector<std::string>(words.begin(), words.end()), separator);
}

std::string quoted(const std::string& text) {
  return text.empty() ? "not said" : fmt::format("'{}'", text);
}

// What a pair's times are of: "aligned", or "aligned and chained".
std::string regime_text(const Json& record) {
  std::set<std::string> regimes;
  for (const char* part : {"layer", "all_stages"}) {
    const std::string regime = find_text(record, std::string(part) + ".regime");
    if (!regime.empty()) regimes.insert(regime);
  }
  for (const std::string_view stage : kStageNames) {
    const std::string regime = find_text(record, fmt::format("stages.{}.regime", stage));
    if (!regime.empty()) regimes.insert(regime);
  }
  return regimes.empty() ? "no times" : listed(regimes, " and ");
}

// What says how a record's routing was drawn.
std::string routing_cause(const Json& record) {
  std::string cause;
  for (const char* axis : {"model", "routing", "seed", "step", "tokens_global", "layers"}) {
    cause += axis_key(record, axis) + "\n";
  }
  return cause;
}

// The first pair whose repeats differ in `value` between the sides, "of EP8 ...: x in A, y in B".
// A side's own repeats that differ count too: they are one sample.
std::optional<std::string> first_pair(const Matching& matching,
                                      const std::function<std::string(const Json&)>& value) {
  for (const MatchedPair& pair : matching.pairs) {
    const std::string first = value(*pair.a.front());
    for (const std::vector<const Json*>* repeats : {&pair.a, &pair.b}) {
      for (const Json* record : *repeats) {
        if (value(*record) == first) continue;
        return fmt::format("{}: {}", short_point_label(*pair.a.front()),
                           in_both(first, value(*record)));
      }
    }
  }
  return std::nullopt;
}

// A changed shape under an old name is told by what changed.
std::string axes_in_both(const Json& of_a, const Json& of_b, const std::string& axis) {
  const std::string mine = axis_text(of_a, axis), theirs = axis_text(of_b, axis);
  if (mine != theirs) return in_both(mine, theirs);
  return fmt::format("{} with {}", mine, axis_change(of_a, of_b, axis));
}

void add_axis(const CompareSide& a, const CompareSide& b, const Matching& matching,
              const std::string& axis, Differences& found) {
  if (is_apart(a, b, axis)) {
    const std::string mine = some_of(axis_texts(a.records, axis));
    const std::string theirs = some_of(axis_texts(b.records, axis));
    found.push_back({axis, mine == theirs
                               ? axes_in_both(*a.records.front(), *b.records.front(), axis)
                               : in_both(mine, theirs)});
    return;
  }
  for (const MatchedPair& pair : matching.pairs) {
    const Json &of_a = *pair.a.front(), &of_b = *pair.b.front();
    if (axis_key(of_a, axis) == axis_key(of_b, axis)) continue;
    found.push_back(
        {axis, fmt::format("{}: {}", short_point_label(of_a), axes_in_both(of_a, of_b, axis))});
    return;
  }
}

bool was_simulated(const Json& run) {
  const Json* simulated = find_value(run, "simulated");
  return simulated != nullptr && *simulated == true;
}

// Device models by what the runs say; absent facts are a difference of their own.
std::vector<std::string> device_differences(const Json& a, const Json& b) {
  struct Fact {
    const char *name, *path;
  };
  std::vector<Fact> facts = {{"backend", "backend"}, {"device", "provenance.device"}};
  if (!was_simulated(a) && !was_simulated(b)) {
    facts.push_back({"CPU model", "provenance.cpu_model"});
  }
  std::vector<std::string> texts;
  for (const Fact& fact : facts) {
    const std::string mine = find_text(a, fact.path), theirs = find_text(b, fact.path);
    if (mine == theirs && !mine.empty()) continue;
    texts.push_back(fmt::format("{} {}", fact.name, in_both(quoted(mine), quoted(theirs))));
  }
  return texts;
}

// A declared GPU changes what is simulated, and only what measured times are compared with.
bool declared_apart(const MatchedPair& pair) {
  const Json &of_a = *pair.a.front(), &of_b = *pair.b.front();
  return is_simulated(of_a) && is_simulated(of_b) &&
         axis_key(of_a, "hardware") != axis_key(of_b, "hardware");
}

void add_hardware(const CompareSide& a, const CompareSide& b, const Matching& matching,
                  Differences& found) {
  // Whatever one run was on, it was the same.
  if (a.run == b.run) return;
  std::vector<std::string> texts = device_differences(a.run->run, b.run->run);
  if (const auto pair = std::ranges::find_if(matching.pairs, declared_apart);
      pair != matching.pairs.end()) {
    texts.push_back("declared " + axes_in_both(*pair->a.front(), *pair->b.front(), "hardware"));
  }
  if (!texts.empty()) found.push_back({"hardware", join(texts, "; ")});
}

std::set<std::string> states_with_times(const CompareSide& side) {
  std::set<std::string> states;
  for (const Json* record : side.records) {
    if (has_row(*record)) states.insert(find_text(*record, "state"));
  }
  return states;
}

// Also where no point has a partner: simulated ones name other transports than measured ones.
void add_state(const CompareSide& a, const CompareSide& b, const Matching& matching,
               Differences& found) {
  const std::set<std::string> of_a = states_with_times(a), of_b = states_with_times(b);
  const auto state = [](const Json& record) { return find_text(record, "state"); };
  const bool apart =
      std::ranges::none_of(of_a, [&](const auto& one) { return of_b.contains(one); });
  if (apart && !of_a.empty() && !of_b.empty()) {
    found.push_back({"state", in_both(listed(of_a, ", "), listed(of_b, ", "))});
  } else if (const auto pair = first_pair(matching, state)) {
    found.push_back({"state", *pair});
  }
}

void add_routing(const Matching& matching, Differences& found) {
  for (const MatchedPair& pair : matching.pairs) {
    const Json &of_a = *pair.a.front(), &of_b = *pair.b.front();
    const std::string mine = find_text(of_a, "routing_checksum");
    const std::string theirs = find_text(of_b, "routing_checksum");
    if (mine.empty() || theirs.empty() || mine == theirs) continue;
    if (routing_cause(of_a) != routing_cause(of_b)) continue;
    found.push_back({"routing_checksum",
                     fmt::format("{}: {}", short_point_label(of_a), in_both(mine, theirs))});
    return;
  }
}

void add_run_difference(const Json& a, const Json& b, const std::string& path, Differences& found) {
  const Json *mine = find_value(a, path), *theirs = find_value(b, path);
  const std::string of_a = mine != nullptr ? json_excerpt(*mine) : "not said";
  const std::string of_b = theirs != nullptr ? json_excerpt(*theirs) : "not said";
  const bool same = mine == nullptr || theirs == nullptr ? mine == theirs : *mine == *theirs;
  if (!same) found.push_back({path.substr(path.rfind('.') + 1), in_both(of_a, of_b)});
}

}  // namespace

std::vector<FieldDifference> field_differences(const CompareSide& a, const CompareSide& b,
                                               const Matching& matching,
                                               const std::set<std::string>& chosen) {
  Differences found;
  add_axis(a, b, matching, "concurrency", found);
  if (!chosen.contains("dtype")) add_axis(a, b, matching, "dtype", found);
  add_hardware(a, b, matching, found);
  if (!chosen.contains("model")) add_axis(a, b, matching, "model", found);
  if (const auto pair = first_pair(matching, regime_text)) found.push_back({"regime", *pair});
  add_routing(matching, found);
  add_state(a, b, matching, found);
  return found;
}

std::vector<FieldDifference> run_differences(const RunData& a, const RunData& b) {
  if (&a == &b) return {};
  Differences found;
  for (const char* path :
       {"schema_version", "provenance.epsweep_version", "provenance.git_revision",
        "provenance.build_type", "provenance.sanitizers", "provenance.compiler",
        "provenance.mpi_library", "provenance.libraries", "provenance.num_hosts",
        "provenance.environment", "threads_per_rank", "injected_faults"}) {
    add_run_difference(a.run, b.run, path, found);
  }
  return found;
}

}  // namespace epsweep
