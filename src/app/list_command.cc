#include <algorithm>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "app/commands.h"
#include "app/experiment.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "device/backend.h"
#include "device/grouped_gemm.h"
#include "device/transport.h"
#include "report/metric.h"
#include "workload/distribution.h"
#include "workload/placement.h"

namespace epsweep {
namespace {

// One name an experiment may use, with what is said about it.
struct Listed {
  std::string name, text;
};
struct Section {
  std::string title;
  std::vector<Listed> entries;
};

template <typename Entry, typename Text>
Section section(const std::string& title, const Registry<Entry>& catalog, Text text) {
  Section result{title, {}};
  for (const std::string& name : catalog.names()) {
    result.entries.push_back({name, text(catalog.at(name))});
  }
  return result;
}

std::string param_text(const ParamSpec& param) {
  if (param.kind == ParamSpec::Kind::file) return fmt::format("{} ({})", param.name, param.help);
  if (param.presence == ParamSpec::Presence::when_said) {
    return fmt::format("{} (optional: {})", param.name, param.help);
  }
  return fmt::format("{} (default {}, {} to {})", param.name, param.default_value, param.min,
                     param.max);
}

std::string distribution_text(const Distribution& entry) {
  std::vector<std::string> params;
  for (const ParamSpec& param : entry.params) params.push_back(param_text(param));
  std::string text = entry.summary;
  if (!params.empty()) text += "; " + join(params);
  if (!entry.skew.param.empty()) {
    text += fmt::format(
        "; {} instead of {} asks for the hottest expert's rows over the mean "
        "(imbalance of ranks follows from EP size and placement)",
        kMaxOverMean, entry.skew.param);
  }
  return text;
}

Section models() {
  Section result{"models", {}};
  for (const auto& file : std::filesystem::directory_iterator(find_models_dir(""))) {
    if (file.path().extension() != ".yaml") continue;
    const std::string path = file.path().string();
    const ModelShape model = read_model_shape(parse_yaml(read_text_file(path), path), std::nullopt);
    result.entries.push_back(
        {file.path().stem().string(),
         fmt::format("{} experts, top-{}, rows {} wide, expert width {}, {} MoE layers",
                     model.num_experts, model.top_k, model.expert_io_dim, model.ffn_dim,
                     model.num_moe_layers)});
  }
  std::ranges::sort(result.entries, {}, &Listed::name);
  return result;
}

std::string number_or_unknown(const std::optional<double>& value, const char* unit) {
  return value.has_value() ? fmt::format("{} {}", *value, unit) : fmt::format("unstated {}", unit);
}

Section hardware() {
  Section result{"hardware", {}};
  const std::string dir = find_hardware_dir("");
  if (dir.empty()) return result;
  for (const auto& file : std::filesystem::directory_iterator(dir)) {
    if (file.path().extension() != ".yaml") continue;
    const std::string path = file.path().string();
    const HardwareShape shape =
        read_hardware_shape(parse_yaml(read_text_file(path), path), std::nullopt);
    const std::string memory =
        shape.memory_bytes ? fmt::format("{} GB", static_cast<double>(*shape.memory_bytes) / 1e9)
                           : "memory unstated";
    const std::string domain =
        shape.domain_size ? fmt::format("domain of {}", *shape.domain_size) : "domain unstated";
    result.entries.push_back(
        {file.path().stem().string(),
         fmt::format("{}, {}, {}, {}", memory,
                     number_or_unknown(shape.peak.memory_tb_per_s, "TB/s"),
                     number_or_unknown(shape.peak.bf16_tflops, "TFLOP/s bf16"), domain)});
  }
  std::ranges::sort(result.entries, {}, &Listed::name);
  return result;
}

std::vector<Section> sections() {
  const auto with_backend = [](const auto& entry) {
    return fmt::format("[{}] {}", entry.backend, entry.summary);
  };
  const auto summary = [](const auto& entry) { return entry.summary; };
  return {
      section("distributions", DistributionCatalog::instance(), distribution_text),
      section("placements", PlacementCatalog::instance(), summary),
      section("transports", TransportCatalog::instance(), with_backend),
      section("grouped_gemms", GroupedGemmCatalog::instance(), with_backend),
      section("backends", BackendCatalog::instance(), summary),
      {"dtypes",
       {{"bf16", "weights, rows and products' operands"},
        {"fp32", "the same"},
        {"fp8",
         "backend cuda: weights, and inputs right before a product, are e4m3 with one fp32 scale "
         "each; rows are bf16"},
        {"fp8_block128",
         "the same with scales of 128 x 128 weights and of 128 inputs of a row; compute capability "
         "9.0"}}},
      {"launch",
       {{"direct", "call by call, as the host issues them"},
        {"graph",
         "every layer captured once and replayed as one piece; backend cuda with a transport of "
         "fixed capacity"}}},
      section("metrics", MetricCatalog::instance(),
              [](const MetricEntry& entry) { return entry.formula; }),
      models(),
      hardware()};
}

}  // namespace

int run(const ListCommand& command) {
  Json json = Json::object();
  for (const Section& part : sections()) {
    if (!command.json) fmt::print("{}\n", part.title);
    std::size_t widest = 0;
    for (const Listed& entry : part.entries) widest = std::max(widest, entry.name.size());
    for (const Listed& entry : part.entries) {
      if (command.json) {
        json[part.title][entry.name] = entry.text;
      } else {
        fmt::print("  {:<{}}  {}\n", entry.name, widest, entry.text);
      }
    }
  }
  if (command.json) fmt::print("{}\n", json.dump(1));
  return static_cast<int>(ExitCode::ok);
}

}  // namespace epsweep
