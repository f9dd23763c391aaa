#include <fmt/format.h>

#include "app/commands.h"
#include "app/experiment.h"
#include "app/plan_table.h"
#include "base/error.h"

namespace epsweep {
namespace {

// 0 where it was not said. Written so that "nan" is refused too.
std::int64_t memory_limit(const PlanCommand& command) {
  if (!command.memory_gib.has_value()) return 0;
  const double gib = *command.memory_gib;
  if (!(gib >= 1e-6 && gib <= 1e9)) {
    throw ConfigError(fmt::format("--memory-gib {} is not between 1e-6 and 1e9", gib));
  }
  return static_cast<std::int64_t>(gib * 0x1p30);
}

}  // namespace

int run(const PlanCommand& command) {
  const SweepSpec spec = load_experiment(command.experiment, command.overrides, command.backend);
  const Plan plan = make_plan(spec);
  check_routings(plan);
  const LaunchLimits limits{.world_size = command.world_size,
                            .memory_bytes = memory_limit(command)};
  if (command.json) {
    fmt::print("{}\n", plan_json(spec, plan, limits).dump(1));
  } else {
    fmt::print("{}", plan_table(spec, plan, limits));
  }
  return static_cast<int>(ExitCode::ok);
}

}  // namespace epsweep
