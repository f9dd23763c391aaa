#include "plan/hardware.h"

#include <cmath>

#include <fmt/format.h>

#include "plan/yaml_reader.h"

namespace epsweep {
namespace {

constexpr double kMaxRate = 1e9;
constexpr double kMaxMemoryGb = 1e6;
constexpr std::int64_t kMaxDomain = 65'536;

struct RateField {
  const char* key;
  std::optional<double> HardwareRates::*member;
};

constexpr RateField kRateFields[] = {
    {"bf16_tflops", &HardwareRates::bf16_tflops},
    {"fp8_tflops", &HardwareRates::fp8_tflops},
    {"fp4_tflops", &HardwareRates::fp4_tflops},
    {"memory_tb_per_s", &HardwareRates::memory_tb_per_s},
    {"link_gb_per_s", &HardwareRates::link_gb_per_s},
    {"nic_gbit_per_s", &HardwareRates::nic_gbit_per_s},
};

std::vector<std::string> rate_keys() {
  std::vector<std::string> keys;
  for (const RateField& field : kRateFields) keys.emplace_back(field.key);
  return keys;
}

void read_rates(const MapReader& map, HardwareRates& rates) {
  for (const RateField& field : kRateFields) {
    if (const YamlNode* node = map.find(field.key)) {
      rates.*field.member = read_number(*node, 1e-6, kMaxRate);
    }
  }
}

void refuse_above_peak(const YamlNode& node, const HardwareShape& hardware) {
  for (const RateField& field : kRateFields) {
    const std::optional<double>& peak = hardware.peak.*field.member;
    const std::optional<double>& measured = hardware.measured.*field.member;
    if (!peak.has_value() || !measured.has_value() || *measured <= *peak) continue;
    fail_at(node,
            fmt::format("{}: {} measured is above the peak of {}", field.key, *measured, *peak));
  }
}

Json rates_json(const HardwareRates& rates) {
  Json json = Json::object();
  for (const RateField& field : kRateFields) json[field.key] = json_or_null(rates.*field.member);
  return json;
}

}  // namespace

const std::vector<std::string>& hardware_keys() {
  static const std::vector<std::string> keys = {"name",        "source", "memory_gb",
                                                "domain_size", "peak",   "measured"};
  return keys;
}

HardwareShape read_hardware_shape(const YamlNode& node, const std::optional<HardwareShape>& base) {
  const MapReader map(node, hardware_keys());
  if (!base.has_value()) map.require("name");
  HardwareShape hardware = base.value_or(HardwareShape{});
  if (const YamlNode* name = map.find("name")) hardware.name = read_word(*name);
  if (const YamlNode* source = map.find("source")) hardware.source = read_word(*source);
  if (const YamlNode* memory = map.find("memory_gb")) {
    hardware.memory_bytes = std::llround(read_number(*memory, 1e-6, kMaxMemoryGb) * 1e9);
  }
  if (const YamlNode* size = map.find("domain_size")) {
    hardware.domain_size = static_cast<int>(read_count(*size, 1, kMaxDomain));
  }
  if (const YamlNode* peak = map.find("peak")) {
    read_rates(MapReader(*peak, rate_keys()), hardware.peak);
  }
  if (const YamlNode* measured = map.find("measured")) {
    std::vector<std::string> keys = rate_keys();
    keys.emplace_back("source");
    const MapReader rates(*measured, keys);
    hardware.measured_source = read_word(rates.require("source"));
    read_rates(rates, hardware.measured);
  }
  refuse_above_peak(node, hardware);
  return hardware;
}

Json hardware_json(const HardwareShape& hardware) {
  Json measured = rates_json(hardware.measured);
  measured["source"] = hardware.measured_source;
  return {{"name", hardware.name},
          {"source", hardware.source},
          {"memory_bytes", json_or_null(hardware.memory_bytes)},
          {"domain_size", json_or_null(hardware.domain_size)},
          {"peak", rates_json(hardware.peak)},
          {"measured", std::move(measured)}};
}

}  // namespace epsweep
