#include <algorithm>

#include <fmt/format.h>

#include "app/plan_section.h"

namespace epsweep {

std::vector<PlanSection> plan_sections() {
  return {rows_section(),  skew_section(),   placement_section(),
          bytes_section(), memory_section(), serving_section()};
}

std::string range_text(const std::vector<std::int64_t>& values) {
  const auto [least, most] = std::ranges::minmax(values);
  return least == most ? std::to_string(most) : fmt::format("{}..{}", most, least);
}

Json per_rank_json(const std::vector<std::int64_t>& values) {
  const auto [least, most] = std::ranges::minmax(values);
  return least == most ? Json(most) : Json(values);
}

}  // namespace epsweep
