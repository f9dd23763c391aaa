#include "report/record_access.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/local_copy.h"
#include "base/text.h"

namespace epsweep {

const Json* find_value(const Json& record, std::string_view path) {
  const Json* value = &record;
  while (!path.empty()) {
    const std::string_view key = path.substr(0, path.find('.'));
    path.remove_prefix(std::min(path.size(), key.size() + 1));
    if (!value->is_object()) return nullptr;
    const auto found = value->find(std::string(key));
    if (found == value->end()) return nullptr;
    value = &*found;
  }
  return value->is_null() ? nullptr : value;
}

std::optional<double> find_number(const Json& record, std::string_view path) {
  const Json* value = find_value(record, path);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  return value->get<double>();
}

std::string find_text(const Json& record, std::string_view path) {
  const Json* value = find_value(record, path);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

bool is_simulated(const Json& record) {
  return find_text(record, "state") == "simulated";
}

bool is_predicted(const Json& record) {
  return find_text(record, "state") == "predicted";
}

bool has_measured_compute(const Json& record) {
  return is_predicted(record) && find_value(record, "prediction.label") != nullptr;
}

bool has_row(const Json& record) {
  return is_simulated(record) || is_predicted(record) || find_text(record, "state") == "measured";
}

bool copies_locally(const Json& record) {
  return find_text(record, "point.transport") == kLocalCopy;
}

bool is_counterfactual(const Json& record) {
  return copies_locally(record) || find_text(record, "load_from") == "counterfactual";
}

std::string plain_text(const Json* value) {
  if (value == nullptr) return "";
  if (value->is_string()) return value->get<std::string>();
  return to_json_line(*value);  // never follows the locale
}

std::string routing_text(const Json& record) {
  const Json* routing = find_value(record, "point.routing");
  if (routing == nullptr || !routing->is_object()) return "";
  std::vector<std::string> params;
  for (const auto& [key, value] : routing->items()) {
    if (key != "distribution") params.push_back(fmt::format("{}={}", key, plain_text(&value)));
  }
  const std::string name = find_text(*routing, "distribution");
  return params.empty() ? name : fmt::format("{}({})", name, join(params, " "));
}

std::string placement_text(const Json& record) {
  const std::string name = find_text(record, "point.placement");
  const std::string file = find_text(record, "point.placement_map.file");
  if (file.empty()) return name;
  const std::string checksum = find_text(record, "point.placement_map.file_checksum");
  return fmt::format("{}({} {})", name, file, checksum.substr(0, 8));
}

}  // namespace epsweep
