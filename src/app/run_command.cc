#include <cstdio>

#include <fmt/format.h>

#include "app/commands.h"
#include "app/coordinator.h"
#include "app/experiment.h"
#include "app/in_world.h"
#include "app/launch_facts.h"
#include "app/plan_notes.h"
#include "app/plan_table.h"
#include "app/run_results.h"
#include "app/signals.h"
#include "app/sim_run.h"
#include "base/build_info.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "mpi/environment.h"

namespace epsweep {
namespace {

// Every mistake that can be found before anything is measured or written.
void check_before_running(const SweepSpec& spec, const Plan& plan, int world_size) {
  if (const std::string problem = launch_problem(world_size); !problem.empty()) {
    throw ConfigError(problem);
  }
  check_world(spec, world_size);
  check_routings(plan);
}

// Ranks that read different files or options would hang in the first exchange.
void check_plans_agree(const Comm& world, const Plan& plan) {
  const auto all = world.all_gather(static_cast<std::int64_t>(plan.fingerprint));
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    throw ConfigError(fmt::format(
        "rank {} planned something else than rank 0 (plan checksums {} and {}): experiment file, "
        "options or build differ between ranks",
        rank, hex64(static_cast<std::uint64_t>(all[rank])),
        hex64(static_cast<std::uint64_t>(all[0]))));
  }
}

// Runs with the same identity measured the same thing on the same kind of machine with the same
// build, so their numbers may stand in one table.
std::string identity_of(const Plan& plan, const RankEngine& engine, const HostMap& hosts) {
  const BuildInfo build = build_info();
  return fmt::format("plan {}, build {} {} {}, {} x {} on {} hosts, {} threads per rank",
                     hex64(plan.fingerprint), build.git_revision, build.build_type,
                     build.sanitizers, hosts.ranks.size(), engine.describe().device,
                     hosts.num_hosts, engine.describe().num_threads);
}

Json run_json(const SweepSpec& spec, const Plan& plan, const RankEngine& engine,
              const HostMap& hosts, const RunCommand& command) {
  return {
      {"experiment_file", command.experiment},
      {"started_utc", utc_now()},
      {"num_points", plan.points.size()},
      {"plan_checksum", hex64(plan.fingerprint)},
      {"identity", identity_of(plan, engine, hosts)},
      {"backend", engine.describe().name},
      {"threads_per_rank", engine.describe().num_threads},
      {"injected_faults", command.faults},
      {"experiment", sweep_spec_json(spec)},
      {"notes", plan_notes_json(plan_notes(plan))},
      {"provenance", provenance_json(hosts, engine.describe(), engine.device_ids(), command.argv)}};
}

SweepSpec load_on_rank(const RunCommand& command, const std::vector<Fault>& faults, int rank) {
  SweepSpec spec = load_experiment(command.experiment, command.overrides, command.backend);
  for (const Fault& fault : faults) {
    if (fault.kind == FaultKind::plan_seed && fault.rank == rank) ++spec.seed;
  }
  return spec;
}

// Whatever one rank stumbles over now, the others do not know of: it must end them all.
int run_points(Coordinator& coordinator) {
  try {
    return coordinator.run();
  } catch (const ConfigError& error) {
    throw RunError(error.what());
  }
}

int measure(const RunCommand& command, const Comm& world, const SweepSpec& spec, const Plan& plan,
            const RunSettings& settings) {
  const HostMap hosts = make_host_map(world);
  RankEngine engine(world, make_rank_backend(world, hosts, settings.devices), settings);
  Json run_facts = run_json(spec, plan, engine, hosts, command);
  std::optional<RunDirectory> results;
  std::string problem;
  if (world.rank() == 0) {
    try {
      results.emplace(create_results(command, spec, run_facts));
    } catch (const ConfigError& error) {
      problem = error.what();
    }
  }
  problem = world.first_text(problem);
  if (!problem.empty()) throw ConfigError(problem);
  const std::string warning = launch_warning(hosts);
  if (!warning.empty() && world.rank() == 0) log::warn(warning);
  if (world.rank() == 0) warn_of(plan_notes(plan));
  note_signals();
  Coordinator coordinator(world, hosts, plan, engine, results ? &*results : nullptr);
  const int exit_code = run_points(coordinator);
  engine.close();
  if (world.rank() == 0) {
    run_facts["ceilings"] = engine.ceilings().json();
    finish_results(*results, std::move(run_facts), exit_code);
  }
  return exit_code;
}

// Reads, plans and checks on every rank; the first rank's mistake is everybody's.
int run_in_world(const RunCommand& command, const Comm& world) {
  SweepSpec spec;
  Plan plan;
  RunSettings settings{
      .devices = {.backend = command.backend,
                  .device = command.device,
                  .sharing =
                      command.allow_shared_gpu ? DeviceSharing::allow : DeviceSharing::refuse,
                  .counting = command.counters ? WorkCounting::hardware : WorkCounting::off},
      .faults = {},
      .phase_limit_s = command.phase_limit_s};
  std::string problem;
  if (is_simulated(command)) {
    throw ConfigError(fmt::format(
        "--backend sim runs all ranks in one process: start it without mpirun or srun, with "
        "--ranks {}",
        world.size()));
  }
  if (command.ranks.has_value()) {
    throw ConfigError("--ranks is of --backend sim; measured ranks are started by mpirun or srun");
  }
  try {
    for (const std::string& fault : command.faults) settings.faults.push_back(parse_fault(fault));
    spec = load_on_rank(command, settings.faults, world.rank());
    plan = make_plan(spec);
    settings.ceilings = spec.ceilings;
    settings.kernels = spec.grouped_gemm;
    check_before_running(spec, plan, world.size());
  } catch (const ConfigError& error) {
    problem = error.what();
  }
  problem = world.first_text(problem);
  if (!problem.empty()) throw ConfigError(problem);
  check_plans_agree(world, plan);
  if (command.dry_run) {
    const HostMap hosts = make_host_map(world);
    const LaunchLimits limits{.world_size = world.size(),
                              .memory_bytes = memory_per_rank(hosts, world.rank())};
    if (world.rank() == 0) fmt::print("{}", plan_table(spec, plan, limits));
    return static_cast<int>(ExitCode::ok);
  }
  return measure(command, world, spec, plan, settings);
}

}  // namespace

int run(const RunCommand& command) {
  // Of a launch with several ranks MPI sees to it that one of them complains.
  if (is_simulated(command) && !launched_with_ranks()) return run_simulated(command);
  return in_world([&](const Comm& world) { return run_in_world(command, world); });
}

}  // namespace epsweep
