#include "app/experiment.h"

#include <cstdlib>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/host_probe.h"
#include "base/text.h"
#include "device/backend.h"
#include "device/grouped_gemm.h"
#include "device/transport.h"
#include "sim/names.h"
#include "workload/distribution.h"
#include "workload/placement.h"
#include "workload/placement_traces.h"
#include "workload/rank_dispatch.h"
#include "workload/trace.h"

namespace epsweep {

namespace fs = std::filesystem;

namespace {

// Empty where there is no such folder.
std::string find_dir(const char* variable, const char* name, const std::string& experiment_file) {
  if (const char* set = std::getenv(variable)) return set;
  std::vector<fs::path> places;
  if (!experiment_file.empty()) {
    const fs::path folder = fs::absolute(experiment_file).parent_path();
    places = {folder.parent_path() / name, folder / name};
  }
  std::error_code ignored;
  const fs::path executable = fs::read_symlink("/proc/self/exe", ignored);
  for (fs::path above = executable.parent_path(); above.has_relative_path();
       above = above.parent_path()) {
    places.push_back(above / "configs" / name);
  }
  for (const fs::path& place : places) {
    if (fs::is_directory(place, ignored)) return place.string();
  }
  return "";
}

// Throws ConfigError if a transport or kernel of the experiment belongs to another backend. A
// simulation stands in for any of them.
void check_backend_names(const SweepSpec& spec, const std::string& backend) {
  const auto check = [&backend](const char* axis, const auto& entry) {
    const bool goes_with_all = backend == kSimBackend || entry.backend == kAnyBackend;
    if (entry.backend == backend || goes_with_all) return;
    throw ConfigError(fmt::format("{} '{}' belongs to backend '{}', the run uses '{}'", axis,
                                  entry.name, entry.backend, backend));
  };
  for (const std::string& name : spec.transport) {
    check("transport", TransportCatalog::instance().at(name));
  }
  for (const std::string& name : spec.grouped_gemm) {
    check("grouped_gemm", GroupedGemmCatalog::instance().at(name));
  }
}

}  // namespace

Catalogs linked_catalogs(const std::string& backend) {
  const BackendCatalog& backends = BackendCatalog::instance();
  if (!backends.contains(backend)) {
    throw ConfigError(
        fmt::format("there is no backend '{}'; linked in: {}", backend, join(backends.names())));
  }
  Catalogs catalogs;
  catalogs.default_transport = backends.at(backend).default_transport;
  catalogs.default_grouped_gemm = backends.at(backend).default_grouped_gemm;
  const DistributionCatalog& distributions = DistributionCatalog::instance();
  for (const std::string& name : distributions.names()) {
    const Distribution& entry = distributions.at(name);
    catalogs.distributions.push_back({entry.name, entry.summary, entry.params, entry.skew.param});
  }
  const PlacementCatalog& placements = PlacementCatalog::instance();
  for (const std::string& name : placements.names()) {
    const PlacementEntry& entry = placements.at(name);
    catalogs.placements.push_back(
        {.name = name, .slot_rule = entry.slot_rule, .fitted_to = entry.fitted_to});
  }
  catalogs.transports = TransportCatalog::instance().names();
  catalogs.grouped_gemms = GroupedGemmCatalog::instance().names();
  return catalogs;
}

std::string find_models_dir(const std::string& experiment_file) {
  std::string dir = find_dir("EPSWEEP_MODELS_DIR", "models", experiment_file);
  if (!dir.empty()) return dir;
  throw ConfigError("no folder of model files found; set EPSWEEP_MODELS_DIR to configs/models");
}

std::string find_hardware_dir(const std::string& experiment_file) {
  return find_dir("EPSWEEP_HARDWARE_DIR", "hardware", experiment_file);
}

SweepSpec load_experiment(const std::string& file, const std::vector<std::string>& overrides,
                          const std::string& backend) {
  const std::string text = read_text_file(file);
  SweepSpec spec = read_sweep_spec(text, file, overrides,
                                   {.models_dir = find_models_dir(file),
                                    .catalogs = linked_catalogs(backend),
                                    .hardware_dir = find_hardware_dir(file)});
  check_backend_names(spec, backend);
  return spec;
}

std::optional<std::string> reason_not_to_plan(const SweepPoint& point) {
  if (auto reason = infeasible_reason(point)) return reason;
  if (auto reason = position_refusal(point)) return reason;
  if (auto reason = slot_refusal(point)) return reason;
  return trace_refusal(point, memory_total_bytes());
}

void check_routings(const Plan& plan) {
  std::set<std::string> seen;
  for (const SweepPoint& point : plan.points) {
    if (reason_not_to_plan(point)) continue;
    for (const SweepPoint& drawn : {point, fitted_point(point), judged_point(point)}) {
      if (!seen.insert(trace_key(drawn)).second) continue;
      for (int layer = 0; layer < point.layers; ++layer) make_token_router(drawn, layer);
    }
  }
}

}  // namespace epsweep
