#include "app/virtual_predict.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "app/experiment.h"
#include "app/in_world.h"
#include "app/signals.h"
#include "app/sim_run.h"
#include "app/virtual_ranks.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "sim/names.h"

namespace epsweep {
namespace {

// Absent for "all". Throws ConfigError.
std::optional<int> most_shards_of(const std::string& text) {
  if (text == "all") return std::nullopt;
  int most = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), most);
  if (error == std::errc() && end == text.data() + text.size() && most >= 1) return most;
  throw ConfigError(
      fmt::format("--virtual-ranks {}: neither `all` nor a number of ranks from 1", text));
}

void warn_of_left_out(const std::vector<int>& others, int ep_size) {
  if (others.empty()) return;
  log::warn(fmt::format("--virtual-ep {}: other ep_sizes of the experiment are left out: {}",
                        ep_size, join(others)));
}

void expect_possible(const Plan& plan, int ep_size) {
  std::string first;
  for (const SweepPoint& point : plan.points) {
    const auto reason = reason_not_to_plan(point);
    if (!reason) return;
    if (first.empty()) first = *reason;
  }
  if (!first.empty()) throw ConfigError(fmt::format("--virtual-ep {}: {}", ep_size, first));
}

struct Prepared {
  SweepSpec spec;
  std::vector<int> left_out;  // other EP sizes of the experiment
  SimLaunch launch;
  PredictionSource source;  // on rank 0
};

Prepared prepare(const PredictCommand& command, const RunCommand& launch, const Comm& world,
                 const SourceMaker& make_source) {
  const bool is_first = world.rank() == 0;
  if (const std::string problem = launch_problem(world.size()); !problem.empty()) {
    throw ConfigError(problem);
  }
  Prepared prepared;
  prepared.spec = load_experiment(launch.experiment, launch.overrides, command.backend);
  prepared.left_out = std::exchange(prepared.spec.ep_sizes, {*command.virtual_ep});
  std::erase(prepared.left_out, *command.virtual_ep);
  // Rank 0 alone reads a calibration; costs of a hardware file are part of everybody's plan.
  if (is_first || command.calibration.empty()) prepared.source = make_source(prepared.spec);
  prepared.launch = plan_launch(launch, prepared.spec);
  expect_possible(prepared.launch.plan, *command.virtual_ep);
  if (is_first && prepared.source.calibration) {
    check_predictable(*prepared.source.calibration, prepared.launch.plan,
                      prepared.launch.num_ranks);
  }
  return prepared;
}

// The first rank's mistake is everybody's.
void agree(const Comm& world, const std::string& own_problem) {
  const std::string problem = world.first_text(own_problem);
  if (!problem.empty()) throw ConfigError(problem);
}

// Ranks that read different files would hang in the first shard.
void check_plans_agree(const Comm& world, const Plan& plan) {
  const auto own = static_cast<std::int64_t>(plan.fingerprint);
  if (world.all_min(own) == world.all_max(own)) return;
  throw ConfigError(
      "ranks planned different things: experiment file, options or build differ between them");
}

template <typename Act>
std::string problem_of(const Act& act) {
  try {
    act();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

// Rank 0 walks through the points, predicts and writes; the others measure when it says so.
int measure(const PredictCommand& command, const RunCommand& launch, const Comm& world,
            Prepared& prepared) {
  const HostMap hosts = make_host_map(world);
  VirtualRanks ranks(world, hosts,
                     make_rank_backend(world, hosts, {.backend = command.backend, .device = {}}),
                     {.most_shards = most_shards_of(command.virtual_ranks),
                      .iterations = command.virtual_iterations});
  const BackendInfo device = ranks.describe();
  agree(world, problem_of([&] {
          if (world.rank() != 0 || !prepared.source.calibration) return;
          check_device(*prepared.source.calibration, device.device, device.num_threads);
        }));
  note_signals();
  std::array<std::int64_t, 1> exit_code = {0};
  std::string problem;
  if (world.rank() == 0) {
    warn_of_left_out(prepared.left_out, *command.virtual_ep);
    prepared.source.virtual_ranks = &ranks;
    prepared.source.label += fmt::format(", compute on {} x {} here", world.size(), device.device);
    problem = problem_of([&] {
      exit_code[0] = run_planned(launch, prepared.spec, prepared.launch, &prepared.source);
    });
    ranks.dismiss();
  } else {
    ranks.follow(prepared.launch.plan);
  }
  agree(world, problem);
  world.broadcast(std::span(exit_code), 0);
  return static_cast<int>(exit_code[0]);
}

int predict_in_world(const PredictCommand& command, const RunCommand& launch, const Comm& world,
                     const SourceMaker& make_source) {
  Prepared prepared;
  agree(world, problem_of([&] { prepared = prepare(command, launch, world, make_source); }));
  check_plans_agree(world, prepared.launch.plan);
  return measure(command, launch, world, prepared);
}

}  // namespace

void check_virtual_options(const PredictCommand& command) {
  most_shards_of(command.virtual_ranks);
  if (command.backend == kSimBackend) {
    throw ConfigError("--virtual-ep measures compute, which --backend sim has none of");
  }
}

int predict_with_virtual_ranks(const PredictCommand& command, const RunCommand& launch,
                               const SourceMaker& make_source) {
  return in_world(
      [&](const Comm& world) { return predict_in_world(command, launch, world, make_source); });
}

}  // namespace epsweep
