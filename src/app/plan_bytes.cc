// The plan's table of what dispatch moves: copies per token by letter, counted and expected, and
// MB.
#include <algorithm>

#include <fmt/format.h>

#include "app/plan_section.h"
#include "report/bytes_json.h"
#include "report/sent_bytes.h"

namespace epsweep {
namespace {

using P = SweepPoint;
using Planned = PlannedPoint;
using Copies = CopiesPerToken;
using Domains = CopiesPerToken::Domains;

std::optional<Copies> counted(const P& point, const Planned& planned) {
  return copies_per_token(planned.work.traffic, point.tokens_global() * point.num_routings());
}

std::optional<Copies> expected(const Planned& planned) {
  if (!planned.expected.has_value()) return std::nullopt;
  return planned.expected->per_token;
}

std::string cell(const std::optional<Copies>& copies, double Copies::*letter) {
  if (!copies.has_value()) return "-";
  return short_number((*copies).*letter);
}

std::string cell(const std::optional<Copies>& copies, double Domains::*letter) {
  if (!copies.has_value() || !copies->domains.has_value()) return "-";
  return short_number((*copies->domains).*letter);
}

// "0.66/4.59" of self and remote copies; the remote ones apart by domain where that is known.
std::string split_text(double self, double remote, const std::optional<double>& intra) {
  if (!intra.has_value()) return fmt::format("{:.2f}/{:.2f}", self, remote);
  // Both were rounded: a difference of nothing may be a little less.
  return fmt::format("{:.2f}/{:.2f}/{:.2f}", self, *intra, std::max(0.0, remote - *intra));
}

std::string a_split(const P& point, const Planned& planned) {
  const std::optional<Copies> copies = counted(point, planned);
  if (!copies.has_value()) return "-";
  return split_text(copies->a_self, copies->a - copies->a_self,
                    copies->domains ? std::optional(copies->domains->a_intra) : std::nullopt);
}

std::string b_split(const P& point, const Planned& planned) {
  const std::optional<Copies> copies = counted(point, planned);
  if (!copies.has_value()) return "-";
  return split_text(copies->b_self, copies->d,
                    copies->domains ? std::optional(copies->domains->b_intra) : std::nullopt);
}

std::string method_text(const P&, const Planned& planned) {
  return planned.expected.has_value() ? to_string(planned.expected->method) : "-";
}

// `shares`: ranks and layers that the copies are of.
std::string megabytes(const Planned& planned, std::int64_t copies, std::int64_t shares) {
  const auto bytes = static_cast<double>(copies * planned.work.traffic.row_bytes);
  return short_number(bytes / static_cast<double>(shares) / 1e6);
}

void put_json(const P& point, const Planned& planned, Json& json) {
  const std::optional<Copies> copies = counted(point, planned);
  Json bytes = bytes_json(planned.work);
  put_sent_bytes(point, planned.work, bytes);
  bytes["per_token"] = {{"counted", copies_json(copies)},
                        {"expected", copies_json(expected(planned))},
                        {"expected_method", nullptr},
                        {"expected_sample_tokens", nullptr}};
  if (planned.expected.has_value()) {
    bytes["per_token"]["expected_method"] = to_string(planned.expected->method);
    if (planned.expected->sample_tokens > 0) {
      bytes["per_token"]["expected_sample_tokens"] = planned.expected->sample_tokens;
    }
  }
  bytes["per_token_by_dtype"] = per_token_by_dtype_json(point, copies);
  json["bytes"] = std::move(bytes);
}

std::vector<PlanColumn> copy_columns() {
  return {{{"A"}, [](const P& p, const Planned& d) { return cell(counted(p, d), &Copies::a); }},
          {{"A self/intra/inter"}, a_split},
          {{"B"}, [](const P& p, const Planned& d) { return cell(counted(p, d), &Copies::b); }},
          {{"exp"}, [](const P&, const Planned& d) { return cell(expected(d), &Copies::b); }},
          {{"B self/intra/inter"}, b_split},
          {{"C"}, [](const P& p, const Planned& d) { return cell(counted(p, d), &Domains::c); }},
          {{"exp"}, [](const P&, const Planned& d) { return cell(expected(d), &Domains::c); }},
          {{"D"}, [](const P& p, const Planned& d) { return cell(counted(p, d), &Copies::d); }},
          {{"exp"}, [](const P&, const Planned& d) { return cell(expected(d), &Copies::d); }},
          {{"E"}, [](const P& p, const Planned& d) { return cell(counted(p, d), &Domains::e); }},
          {{"exp"}, [](const P&, const Planned& d) { return cell(expected(d), &Domains::e); }},
          {{"method", Align::left}, method_text}};
}

std::vector<PlanColumn> megabyte_columns() {
  return {{{"A MB"},
           [](const P& point, const Planned& p) {
             const Traffic& traffic = p.work.traffic;
             return megabytes(p, traffic.a_copies - traffic.a_self_copies,
                              std::int64_t{point.ep_size} * point.num_routings());
           }},
          {{"D MB"},
           [](const P& point, const Planned& p) {
             return megabytes(p, p.work.traffic.d_copies,
                              std::int64_t{point.ep_size} * point.num_routings());
           }},
          {{"A sent"},
           [](const P&, const Planned& p) {
             return megabytes(p, p.work.traffic.max_remote_rows_sent, 1);
           }},
          {{"A received"},
           [](const P&, const Planned& p) {
             return megabytes(p, p.work.traffic.max_remote_rows_received, 1);
           }},
          {{"D received"}, [](const P&, const Planned& p) {
             return megabytes(p, p.work.traffic.max_d_copies_received, 1);
           }}};
}

}  // namespace

PlanSection bytes_section() {
  PlanSection section = {
      .title = "Bytes",
      .legend =
          "Copies per token: A per assignment, B per distinct rank, C per distinct domain, D per "
          "distinct remote rank, E per distinct remote domain; exp: expected of other tokens. "
          "Without a topology nothing is said about domains. MB of one rank, layer and dispatch, "
          "self left out: A MB, D MB the mean, the others of the busiest rank.",
      .applies = [](const SweepSpec&, const LaunchLimits&) { return true; },
      .columns = copy_columns(),
      .put_json = put_json};
  for (PlanColumn& column : megabyte_columns()) section.columns.push_back(std::move(column));
  return section;
}

}  // namespace epsweep
