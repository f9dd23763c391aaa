#include "report/choice_lines.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/text.h"
#include "report/record_access.h"

namespace epsweep {
namespace {

// One candidate over all layers and ranks of a group.
struct Candidate {
  std::string name;
  int times_taken = 0;
  std::optional<double> least_us, most_us;
  std::string left_out;  // the first reason
};

Candidate& candidate_of(const std::string& name, std::vector<Candidate>& all) {
  const auto found = std::ranges::find(all, name, &Candidate::name);
  if (found != all.end()) return *found;
  return all.emplace_back(Candidate{name, 0, {}, {}, ""});
}

std::vector<Candidate> candidates_of(const Json& choices) {
  std::vector<Candidate> all;
  for (const Json& choice : choices) {
    for (const Json& measured : choice.at("candidates")) {
      Candidate& candidate = candidate_of(find_text(measured, "name"), all);
      if (const auto us = find_number(measured, "us")) {
        candidate.least_us = std::min(candidate.least_us.value_or(*us), *us);
        candidate.most_us = std::max(candidate.most_us.value_or(*us), *us);
      } else if (candidate.left_out.empty()) {
        candidate.left_out = find_text(measured, "left_out");
      }
    }
    ++candidate_of(find_text(choice, "chosen"), all).times_taken;
  }
  return all;
}

std::string time_text(const Candidate& candidate) {
  const std::string least = short_number(candidate.least_us);
  const std::string most = short_number(candidate.most_us);
  return candidate.name + " " + (least == most ? least : least + "-" + most);
}

std::string gemm_lines(const std::string& label, const Json& choices) {
  std::vector<std::string> taken, times, left_out;
  for (const Candidate& candidate : candidates_of(choices)) {
    if (candidate.times_taken > 0) {
      taken.push_back(
          fmt::format("{} {} of {}", candidate.name, candidate.times_taken, choices.size()));
    }
    if (candidate.least_us) times.push_back(time_text(candidate));
    if (!candidate.left_out.empty()) {
      left_out.push_back(fmt::format("{} ({})", candidate.name, candidate.left_out));
    }
  }
  std::string text = fmt::format("  {}: {}\n", label, join(taken));
  std::string details = join(times);
  if (!left_out.empty()) {
    details += std::string(details.empty() ? "" : "; ") + "left out: " + join(left_out);
  }
  return text + "    " + details + "\n";
}

// Nothing to say of a kernel that had nothing to choose from.
bool tells(const Json& choices) {
  return std::ranges::any_of(choices,
                             [](const Json& choice) { return !choice.at("candidates").empty(); });
}

std::string label_of(const TableRow& row, const std::vector<Axis>& varying,
                     const std::string& gemm) {
  const Json& record = *row.record;
  std::string label =
      fmt::format("EP{} {} tok/group", plain_text(find_value(record, "point.ep_size")),
                  plain_text(find_value(record, "point.tokens_global")));
  for (const Axis& axis : varying) label += fmt::format(" {} {}", axis.name, axis.text(row));
  return label + " " + gemm;
}

}  // namespace

std::string choice_text(const std::vector<TableRow>& rows, const std::vector<Axis>& varying) {
  std::string lines;
  for (const TableRow& row : rows) {
    for (const std::string gemm : {"gate_up", "down"}) {
      const Json* choices = find_value(*row.record, "m_distribution." + gemm + ".choices");
      if (choices == nullptr || !choices->is_array() || !tells(*choices)) continue;
      lines += gemm_lines(label_of(row, varying, gemm), *choices);
    }
  }
  if (lines.empty()) return "";
  return "\nKernels that were picked\n"
         "  taken by (layer, rank)s; us: least to most of their cold medians, with the rank's own "
         "rows\n" +
         lines;
}

}  // namespace epsweep
