// A run's records as what a prediction is calibrated with.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "costs/stage_costs.h"
#include "plan/sweep_point.h"
#include "report/result_file.h"

namespace epsweep {

// Whether the calibration has to say what expert FFNs take, or they are measured by themselves:
// then points of any grouped_gemm tell about the rest.
enum class FfnFrom { calibration, measurement };

struct Calibration {
  RunData run;
  // More of the table of expert FFNs: of experts of the same widths, dtype and kernel, however
  // many. With `model: {base: NAME, num_experts: 2, top_k: 1}` at EP1 one rank measures what a rank
  // of a wide EP size computes.
  std::optional<RunData> ffn;
  FfnFrom ffn_from = FfnFrom::calibration;
};

// What a point needs of a calibration; throws ConfigError with the one reason where that was not
// measured. Only points of the same expert layer, dtype, exchange unit, transport and kernel count
// (a simulation's `declared` stands for any of the last two).
//   expert_ffn  one sample of each point with contiguous experts: active slots and rows of a slot,
//               averaged over ranks, and the ranks' mean time. Floor: the run's slowest ceilings,
//               else the rates of the experiment's hardware.
//   dispatch, combine  transfer, p50, over the bytes of the busiest rank; those that leave a domain
//               by the share that the counted copies have
//   the rest    p50 of the slowest rank, lines over tokens of a rank, or peers (count_exchange)
// All times are of the aligned regime.
StageCosts calibrated_costs(const Calibration& calibration, const SweepPoint& point);

// Throws ConfigError for a calibration from other hardware than the experiment names, or whose two
// runs are of different devices. `hardware`: its name; empty where it names none.
void check_hardware(const Calibration& calibration, const std::string& hardware);

// Throws ConfigError where the calibration ran on other ranks than those that measure now: another
// device, or another share of it. A simulated one ran on none.
void check_device(const Calibration& calibration, const std::string& device, int threads_per_rank);

// Fixed parts, lines and the sizes they were fitted on, for run.json.
Json stage_costs_json(const StageCosts& costs);

// Which run it was and what it ran on, for run.json.
Json calibration_json(const Calibration& calibration);

}  // namespace epsweep
