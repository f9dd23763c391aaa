#include "app/sim_run.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <unistd.h>

#include "app/experiment.h"
#include "app/launch_facts.h"
#include "app/plan_notes.h"
#include "app/plan_table.h"
#include "app/run_results.h"
#include "app/signals.h"
#include "app/sim_sweep.h"
#include "app/virtual_ranks.h"
#include "base/build_info.h"
#include "base/error.h"
#include "base/host_probe.h"
#include "base/text.h"
#include "report/calibration.h"
#include "sim/declared_times.h"
#include "sim/names.h"

namespace epsweep {
namespace {

// Where nothing is said: eight to a host, as the default costs are of.
constexpr int kRanksPerHost = 8;

int num_ranks_of(const RunCommand& command, const SweepSpec& spec) {
  const int declared = spec.topology.num_ranks();
  const int num_ranks =
      command.ranks.value_or(declared > 0 ? declared : *std::ranges::max_element(spec.ep_sizes));
  if (declared > 0 && declared != num_ranks) {
    throw ConfigError(
        fmt::format("topology describes {} ranks, --ranks says {}", declared, num_ranks));
  }
  std::vector<int> too_wide = spec.ep_sizes;
  std::erase_if(too_wide, [num_ranks](int ep_size) { return ep_size <= num_ranks; });
  if (!too_wide.empty()) {
    throw ConfigError(
        fmt::format("ep_sizes asks for EP {}, --ranks says {}", join(too_wide), num_ranks));
  }
  return num_ranks;
}

// Domains decide what an exchange costs, so ranks must be somewhere: hosts of eight (or of as many
// as the hardware's domain), the last one perhaps smaller.
Topology assumed_topology(const SweepSpec& spec, int num_ranks) {
  const int per_host =
      spec.hardware && spec.hardware->domain_size ? *spec.hardware->domain_size : kRanksPerHost;
  Topology topology;
  if (num_ranks % per_host == 0) {
    topology.hosts = num_ranks / per_host;
    topology.ranks_per_host = per_host;
    return topology;
  }
  for (int rank = 0; rank < num_ranks; ++rank) topology.host_of_rank.push_back(rank / per_host);
  return topology;
}

std::vector<Fault> parse_faults(const RunCommand& command, int num_ranks) {
  std::vector<Fault> faults;
  for (const std::string& text : command.faults) {
    faults.push_back(parse_fault(text));
    const FaultKind kind = faults.back().kind;
    if (kind != FaultKind::delay && kind != FaultKind::slow_clock) {
      throw ConfigError(
          fmt::format("--inject {}: a simulated run has times only: delay or slow_clock", text));
    }
    if (faults.back().rank >= num_ranks) {
      throw ConfigError(fmt::format("--inject {}: there are {} ranks, from 0", text, num_ranks));
    }
  }
  return faults;
}

void check_costs(const SweepSpec& spec, int num_ranks) {
  if (spec.sim == nullptr) return;
  const auto check = [num_ranks](int rank) {
    if (rank < num_ranks) return;
    throw ConfigError(fmt::format("sim: there is no rank {} of {}", rank, num_ranks));
  };
  for (const SimCosts::RankCosts& one : spec.sim->ranks) check(one.rank);
  for (const SimCosts::SlowLink& link : spec.sim->links) check(link.b);
}

// The one process there is.
HostMap this_process() {
  HostMap hosts;
  hosts.num_hosts = 1;
  std::vector<int> cores(static_cast<std::size_t>(num_allowed_cores()));
  std::iota(cores.begin(), cores.end(), 0);
  hosts.ranks.push_back({.host = 0,
                         .local_rank = 0,
                         .local_size = 1,
                         .allowed_cores = num_allowed_cores(),
                         .cores = std::move(cores),
                         .pid = getpid(),
                         .host_name = host_name()});
  return hosts;
}

// Everything that was declared, or stood in for it.
Json sim_json(const SweepSpec& spec, const Plan& plan, int num_ranks) {
  SimCosts costs = spec.sim != nullptr ? *spec.sim : SimCosts{};
  if (!plan.points.empty() && spec.dtype.size() == 1) {
    const FfnRates rates = ffn_rates(plan.points.front(), costs);
    costs.flop_per_s = rates.flop_per_s;
    costs.weight_bytes_per_s = rates.weight_bytes_per_s;
  }
  for (const Stage stage : {Stage::router, Stage::permute, Stage::unpermute}) {
    std::optional<double>& us = costs.stage_us[static_cast<std::size_t>(stage)];
    us = us.value_or(kDefaultLocalStageUs);
  }
  return {{"note",
           "nothing was measured: a virtual clock, and stages, ranks and links that cost what is "
           "declared here"},
          {"ranks", num_ranks},
          {"costs", sim_costs_json(costs)}};
}

Json run_json(const RunCommand& command, const SweepSpec& spec, const Plan& plan) {
  const BuildInfo build = build_info();
  BackendInfo backend;
  backend.name = kSimBackend;
  backend.device = "virtual clock";
  return {{"experiment_file", command.experiment},
          {"started_utc", utc_now()},
          {"num_points", plan.points.size()},
          {"plan_checksum", hex64(plan.fingerprint)},
          {"identity", fmt::format("simulated, plan {}, build {} {} {}", hex64(plan.fingerprint),
                                   build.git_revision, build.build_type, build.sanitizers)},
          {"backend", kSimBackend},
          {"simulated", true},
          {"injected_faults", command.faults},
          {"experiment", sweep_spec_json(spec)},
          {"notes", plan_notes_json(plan_notes(plan))},
          {"provenance", provenance_json(this_process(), backend, {}, command.argv)}};
}

// `costs` that are declared here are those of no prediction with a calibration: its own stand
// there.
void put_prediction(const PredictionSource& source, const Plan& plan, Json& run_facts) {
  run_facts["predicted_from"] = source.label;
  run_facts["identity"] =
      "predicted from " + source.label + ", " + run_facts["identity"].get<std::string>();
  run_facts["calibration"] = nullptr;
  if (!source.calibration) return;
  run_facts["calibration"] = calibration_json(*source.calibration);
  const auto first = std::ranges::find_if(plan.points, [](const SweepPoint& point) {
    return !reason_not_to_plan(point) && !reason_not_to_predict(point);
  });
  if (first == plan.points.end()) return;
  run_facts["calibration"]["costs_of_first_point"] =
      stage_costs_json(calibrated_costs(*source.calibration, *first));
}

// Compute took place here, on these ranks.
void put_virtual_ranks(const VirtualRanks& ranks, const RunCommand& command, Json& run_facts) {
  const BackendInfo backend = ranks.describe();
  run_facts["provenance"] = ranks.provenance(command.argv);
  run_facts["measured_compute"] = {{"label", kVirtualLabel},
                                   {"backend", backend.name},
                                   {"device", backend.device},
                                   {"present_ranks", ranks.num_present()},
                                   {"threads_per_rank", backend.num_threads}};
  run_facts["sim"]["note"] =
      "router, permute, expert_ffn and unpermute were measured on the ranks of "
      "`measured_compute`; exchanges cost what `predicted_from` says, on a virtual clock";
}

}  // namespace

bool is_simulated(const RunCommand& command) {
  return command.backend == kSimBackend;
}

int run_simulated(const RunCommand& command) {
  return run_virtually(
      command, load_experiment(command.experiment, command.overrides, command.backend), nullptr);
}

SimLaunch plan_launch(const RunCommand& command, SweepSpec& spec) {
  SimLaunch launch{.num_ranks = num_ranks_of(command, spec),
                   .topology_assumed = !spec.topology.declared(),
                   .plan = {}};
  check_costs(spec, launch.num_ranks);
  if (launch.topology_assumed) spec.topology = assumed_topology(spec, launch.num_ranks);
  launch.plan = make_plan(spec);
  check_routings(launch.plan);
  return launch;
}

int run_planned(const RunCommand& command, const SweepSpec& spec, const SimLaunch& launch,
                const PredictionSource* source) {
  const SimSettings settings{.num_ranks = launch.num_ranks,
                             .faults = parse_faults(command, launch.num_ranks),
                             .prediction = source};
  const Plan& plan = launch.plan;
  if (source != nullptr && source->calibration)
    check_predictable(*source->calibration, plan, settings.num_ranks);
  Json run_facts = run_json(command, spec, plan);
  run_facts["sim"] = sim_json(spec, plan, settings.num_ranks);
  if (source != nullptr) put_prediction(*source, plan, run_facts);
  if (source != nullptr && source->calibration) {
    run_facts["sim"]["note"] =
        "nothing was measured here: a virtual clock, and stages that cost what `calibration` says";
    run_facts["sim"]["costs"] = nullptr;
  }
  if (source != nullptr && source->virtual_ranks != nullptr) {
    put_virtual_ranks(*source->virtual_ranks, command, run_facts);
  }
  run_facts["sim"]["topology_assumed"] = launch.topology_assumed;
  RunDirectory results = create_results(command, spec, run_facts);
  warn_of(plan_notes(plan));
  note_signals();
  const int exit_code = SimSweep(settings, plan, results).run();
  finish_results(results, std::move(run_facts), exit_code);
  return exit_code;
}

int run_virtually(const RunCommand& command, SweepSpec spec, const PredictionSource* source) {
  const SimLaunch launch = plan_launch(command, spec);
  if (!command.dry_run) return run_planned(command, spec, launch, source);
  parse_faults(command, launch.num_ranks);
  fmt::print("{}",
             plan_table(spec, launch.plan, {.world_size = launch.num_ranks, .memory_bytes = 0}));
  return static_cast<int>(ExitCode::ok);
}

}  // namespace epsweep
