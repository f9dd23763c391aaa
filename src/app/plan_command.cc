#include <fmt/format.h>

#include "app/commands.h"
#include "app/experiment.h"
#include "app/plan_table.h"
#include "base/error.h"

namespace epsweep {

int run(const PlanCommand& command) {
  const SweepSpec spec = load_experiment(command.experiment, command.overrides);
  const Plan plan = make_plan(spec);
  check_routings(plan);
  const LaunchLimits limits{.world_size = command.world_size,
                            .memory_bytes = static_cast<std::int64_t>(command.memory_gib * 0x1p30)};
  if (command.json) {
    fmt::print("{}\n", plan_json(spec, plan, limits).dump(1));
  } else {
    fmt::print("{}", plan_table(spec, plan, limits));
  }
  return static_cast<int>(ExitCode::ok);
}

}  // namespace epsweep
