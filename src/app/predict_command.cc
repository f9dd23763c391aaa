// `predict`: EP sizes that were not run, with costs of elsewhere.
#include <memory>

#include <fmt/format.h>

#include "app/commands.h"
#include "app/experiment.h"
#include "app/prediction_source.h"
#include "app/sim_run.h"
#include "app/virtual_predict.h"
#include "base/error.h"
#include "base/log.h"
#include "report/calibration.h"
#include "report/record_access.h"
#include "sim/names.h"

namespace epsweep {
namespace {

// What a source measured where it did, else what the vendor states.
double rate_of(const HardwareShape& hardware, const char* what,
               std::optional<double> HardwareRates::*rate) {
  const std::optional<double> best =
      hardware.measured.*rate ? hardware.measured.*rate : hardware.peak.*rate;
  if (best) return *best;
  throw ConfigError(fmt::format("hardware {} does not state its {}", hardware.name, what));
}

std::optional<double> HardwareRates::*tflops_of(DType dtype) {
  const bool is_fp8 = dtype == DType::fp8 || dtype == DType::fp8_block128;
  return is_fp8 ? &HardwareRates::fp8_tflops : &HardwareRates::bf16_tflops;
}

// Bandwidths of the file; latencies stay those of SimCosts.
SimCosts costs_of(const HardwareShape& hardware, const SweepSpec& spec) {
  if (spec.dtype.size() != 1) {
    throw ConfigError("predict --hardware: one dtype at a time has one peak");
  }
  SimCosts costs;
  costs.flop_per_s = rate_of(hardware, "peak of the dtype", tflops_of(spec.dtype[0])) * 1e12;
  costs.weight_bytes_per_s =
      rate_of(hardware, "memory bandwidth", &HardwareRates::memory_tb_per_s) * 1e12;
  costs.self.bytes_per_s = *costs.weight_bytes_per_s / 2;  // reads and writes
  costs.intra.bytes_per_s =
      rate_of(hardware, "link bandwidth", &HardwareRates::link_gb_per_s) * 1e9;
  costs.inter.bytes_per_s =
      rate_of(hardware, "NIC bandwidth", &HardwareRates::nic_gbit_per_s) * 1e9 / 8;
  return costs;
}

// From the calibration's records. The measurements of `--virtual-ep` stand in for its FFNs.
PredictionSource calibrated_source(const PredictCommand& command, const SweepSpec& spec) {
  PredictionSource source;
  source.calibration =
      Calibration{.run = read_run(command.calibration),
                  .ffn = std::nullopt,
                  .ffn_from = command.virtual_ep ? FfnFrom::measurement : FfnFrom::calibration};
  if (!command.ffn_calibration.empty()) source.calibration->ffn = read_run(command.ffn_calibration);
  source.label = "calibration " + command.calibration;
  if (find_value(source.calibration->run.run, "simulated") != nullptr)
    source.label += " (simulated itself)";
  if (source.calibration->ffn) source.label += ", FFN of " + command.ffn_calibration;
  const Json facts = calibration_json(*source.calibration);
  if (facts["oversubscribed_points"] > 0) {
    log::warn(
        fmt::format("{}: {} of its points had more ranks than cores: their times are not fit "
                    "to calibrate with",
                    source.label, to_json_line(facts["oversubscribed_points"])));
  }
  check_hardware(*source.calibration, spec.hardware ? spec.hardware->name : "");
  return source;
}

// Fills in the costs that the hardware file declares.
PredictionSource source_of(const PredictCommand& command, SweepSpec& spec) {
  if (spec.sim != nullptr) {
    throw ConfigError("predict takes its costs from elsewhere: leave `sim` out of the experiment");
  }
  if (command.hardware.empty()) return calibrated_source(command, spec);
  PredictionSource source;
  source.label = fmt::format("hardware {} alone, nothing calibrated", spec.hardware->name);
  spec.sim = std::make_shared<const SimCosts>(costs_of(*spec.hardware, spec));
  return source;
}

}  // namespace

int run(const PredictCommand& command) {
  if (command.calibration.empty() == command.hardware.empty()) {
    throw ConfigError("predict needs --calibration RUN or --hardware NAME");
  }
  RunCommand launch;
  launch.experiment = command.experiment;
  launch.overrides = command.overrides;
  launch.out = command.out;
  launch.backend = kSimBackend;
  launch.ranks = command.ranks;
  launch.argv = command.argv;
  if (!command.hardware.empty()) launch.overrides.push_back("hardware=" + command.hardware);
  if (command.virtual_ep) {
    check_virtual_options(command);
    return predict_with_virtual_ranks(
        command, launch, [&command](SweepSpec& spec) { return source_of(command, spec); });
  }
  SweepSpec spec = load_experiment(launch.experiment, launch.overrides, launch.backend);
  const PredictionSource source = source_of(command, spec);
  return run_virtually(launch, std::move(spec), &source);
}

}  // namespace epsweep
