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
  if (command.json) {
    fmt::print("{}\n", plan_json(spec, plan, command.world_size).dump(1));
  } else {
    fmt::print("{}", plan_table(spec, plan, command.world_size));
  }
  return static_cast<int>(ExitCode::ok);
}

}  // namespace epsweep
