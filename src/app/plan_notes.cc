#include "app/plan_notes.h"

#include <set>

#include <fmt/format.h>

#include "app/experiment.h"
#include "base/log.h"
#include "workload/trace.h"

namespace epsweep {
namespace {

bool is_warning(const RoutingNote& note) {
  return note.kind == RoutingNote::Kind::warning;
}

std::string line_of(const PlanNote& note) {
  return fmt::format("{}{}: {}", is_warning(note.note) ? "warning: " : "", note.routing,
                     note.note.text);
}

}  // namespace

std::vector<PlanNote> plan_notes(const Plan& plan) {
  std::vector<PlanNote> notes;
  std::set<std::string> seen;
  for (const SweepPoint& point : plan.points) {
    const std::string label = point.routing.label();
    if (seen.contains(label) || reason_not_to_plan(point)) continue;
    seen.insert(label);
    for (RoutingNote& note : routing_notes(point)) notes.push_back({label, std::move(note)});
  }
  return notes;
}

std::string plan_notes_text(const std::vector<PlanNote>& notes) {
  std::string text;
  for (const PlanNote& note : notes) text += line_of(note) + "\n";
  return text;
}

Json plan_notes_json(const std::vector<PlanNote>& notes) {
  Json json = Json::array();
  for (const PlanNote& note : notes) {
    json.push_back({{"routing", note.routing},
                    {"kind", is_warning(note.note) ? "warning" : "note"},
                    {"text", note.note.text}});
  }
  return json;
}

void warn_of(const std::vector<PlanNote>& notes) {
  for (const PlanNote& note : notes) {
    if (is_warning(note.note)) log::warn(fmt::format("{}: {}", note.routing, note.note.text));
  }
}

std::vector<std::string> routing_warnings(const SweepPoint& point) {
  std::vector<std::string> warnings;
  for (const RoutingNote& note : routing_notes(point)) {
    if (is_warning(note)) warnings.push_back("routing: " + note.text);
  }
  return warnings;
}

}  // namespace epsweep
