#include "report/bytes_json.h"

#include "costs/row_bytes.h"

namespace epsweep {
namespace {

// Without copies the keys are there, and null.
void put(Json& json, const std::string& name, const std::optional<std::int64_t>& copies,
         std::int64_t row_bytes) {
  json[name + "_copies"] = json_or_null(copies);
  json[name + "_bytes"] = copies.has_value() ? Json(*copies * row_bytes) : Json(nullptr);
}

void put_domains(const Traffic& traffic, Json& json) {
  std::optional<std::int64_t> a_intra, a_inter, b_intra, b_inter, c, e;
  if (traffic.domains.has_value()) {
    a_intra = traffic.domains->a_intra_copies;
    a_inter = traffic.a_copies - traffic.a_self_copies - *a_intra;
    b_intra = traffic.domains->b_intra_copies;
    b_inter = traffic.b_copies - traffic.b_self_copies - *b_intra;
    c = traffic.domains->c_copies;
    e = traffic.domains->e_copies;
  }
  put(json, "a_intra", a_intra, traffic.row_bytes);
  put(json, "a_inter", a_inter, traffic.row_bytes);
  put(json, "b_intra", b_intra, traffic.row_bytes);
  put(json, "b_inter", b_inter, traffic.row_bytes);
  put(json, "c_total", c, traffic.row_bytes);
  put(json, "e_total", e, traffic.row_bytes);
}

Json letter_json(const RowBytes& row, CopyUnit unit, int top_k, double copies) {
  const auto bytes = [copies](std::int64_t of_copy) {
    return copies * static_cast<double>(of_copy);
  };
  return {{"payload_bytes", bytes(row.payload)},
          {"scale_bytes", bytes(row.scale)},
          {"metadata_bytes", bytes(metadata_bytes(unit, top_k))}};
}

Json dtype_json(const RowBytes& row, int top_k, const CopiesPerToken& copies) {
  const auto distinct = [&](double of_letter) {
    return letter_json(row, CopyUnit::distinct, top_k, of_letter);
  };
  Json json = {{"copy", {{"payload_bytes", row.payload}, {"scale_bytes", row.scale}}},
               {"a", letter_json(row, CopyUnit::assignment, top_k, copies.a)},
               {"b", distinct(copies.b)},
               {"c", nullptr},
               {"d", distinct(copies.d)},
               {"e", nullptr}};
  if (copies.domains.has_value()) {
    json["c"] = distinct(copies.domains->c);
    json["e"] = distinct(copies.domains->e);
  }
  return json;
}

// [source][destination].
Json matrix_json(const std::vector<std::int64_t>& matrix, std::size_t ranks) {
  if (matrix.empty()) return nullptr;
  Json rows = Json::array();
  for (auto row = matrix.begin(); row != matrix.end(); row += static_cast<std::ptrdiff_t>(ranks)) {
    rows.push_back(std::vector(row, row + static_cast<std::ptrdiff_t>(ranks)));
  }
  return rows;
}

}  // namespace

Json traffic_json(const Traffic& traffic) {
  Json json = {{"row_bytes", traffic.row_bytes}};
  const auto put_known = [&](const char* name, std::int64_t copies) {
    put(json, name, copies, traffic.row_bytes);
  };
  put_known("a_total", traffic.a_copies);
  put_known("a_self", traffic.a_self_copies);
  put_known("a_remote", traffic.a_copies - traffic.a_self_copies);
  put_known("b_total", traffic.b_copies);
  put_known("b_self", traffic.b_self_copies);
  put_known("b_remote", traffic.b_copies - traffic.b_self_copies);
  put_known("d_total", traffic.d_copies);
  put_domains(traffic, json);
  json["max_remote_rows_sent"] = traffic.max_remote_rows_sent;
  json["max_remote_rows_received"] = traffic.max_remote_rows_received;
  json["max_d_copies_sent"] = traffic.max_d_copies_sent;
  json["max_d_copies_received"] = traffic.max_d_copies_received;
  return json;
}

// Dispatch and combine carry the same copies, in opposite directions.
Json bytes_json(const PointWorkload& work) {
  const Json one_way = traffic_json(work.traffic);
  Json json = {{"places", nullptr},
               {"num_domains", nullptr},
               {"dispatch", one_way},
               {"combine", one_way},
               {"send_matrix", matrix_json(work.send_matrix, work.slots_per_rank.size())}};
  if (work.places.has_value()) {
    json["places"] = to_string(work.places->from);
    json["num_domains"] = work.places->group.num_domains;
  }
  return json;
}

Json copies_json(const std::optional<CopiesPerToken>& copies) {
  if (!copies.has_value()) return nullptr;
  Json json = {
      {"a", copies->a}, {"a_self", copies->a_self}, {"a_intra", nullptr}, {"a_inter", nullptr},
      {"b", copies->b}, {"b_self", copies->b_self}, {"b_intra", nullptr}, {"b_inter", nullptr},
      {"c", nullptr},   {"d", copies->d},           {"e", nullptr}};
  if (!copies->domains.has_value()) return json;
  json["a_intra"] = copies->domains->a_intra;
  json["a_inter"] = copies->domains->a_inter;
  json["b_intra"] = copies->domains->b_intra;
  json["b_inter"] = copies->domains->b_inter;
  json["c"] = copies->domains->c;
  json["e"] = copies->domains->e;
  return json;
}

Json per_token_by_dtype_json(const SweepPoint& point, const std::optional<CopiesPerToken>& copies) {
  if (!copies.has_value()) return nullptr;
  Json json = Json::object();
  for (const RowBytes& row : row_bytes_by_dtype(point.model.expert_io_dim)) {
    json[row.dtype] = dtype_json(row, point.model.top_k, *copies);
  }
  return json;
}

std::string bytes_formula() {
  return "copies of token rows of one group, summed over layers and steps; a: per assignment, b: "
         "per "
         "distinct destination rank, c: per distinct destination domain, d: per distinct remote "
         "rank, e: per distinct remote domain; self: to the token's own rank, remote: the others, "
         "intra: to other ranks of the own domain, inter: to other domains; bytes are copies times "
         "row_bytes, payload alone; combine returns the copies of dispatch. places: what says "
         "where ranks live, the declared topology or the hosts that ranks were found on; a domain "
         "is what the topology says, else a host; null where nothing does. max_*: rank and layer "
         "with most, rows by letter a. send_matrix: dispatched rows by letter a from every rank to "
         "every rank, of groups of up to 32";
}

}  // namespace epsweep
