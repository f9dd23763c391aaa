#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "app/commands.h"
#include "base/error.h"
#include "base/json.h"
#include "report/compare.h"
#include "report/compare_text.h"

namespace epsweep {
namespace {

std::vector<AxisChoice> choices_of(const std::string& option,
                                   const std::vector<std::string>& texts) {
  std::vector<AxisChoice> choices;
  for (const std::string& text : texts) choices.push_back(parse_axis_choice(option, text));
  return choices;
}

// Two names of one directory are one run.
bool is_one_run(const std::vector<std::string>& dirs) {
  return dirs.size() < 2 ||
         std::filesystem::weakly_canonical(dirs[0]) == std::filesystem::weakly_canonical(dirs[1]);
}

}  // namespace

int run(const CompareCommand& command) {
  const CompareRequest request = {.a = choices_of("--a", command.a),
                                  .b = choices_of("--b", command.b),
                                  .across = command.across,
                                  .allow = command.allow};
  std::optional<RegressionLimit> limit;
  if (!command.fail_on.empty()) {
    limit = parse_regression_limit(command.fail_on, command.few_repeats);
  }
  if (command.dirs.size() == 1 && request.a.empty() && request.b.empty()) {
    throw ConfigError(
        "compare: one run and nothing chosen of it: name a second one, or choose with --a and --b "
        "KEY=VALUE");
  }
  const RunData a = read_run(command.dirs.front());
  std::optional<RunData> other;
  if (!is_one_run(command.dirs)) other = read_run(command.dirs.back());
  const Comparison comparison = compare_runs(a, other ? *other : a, request);
  std::optional<RegressionCheck> check;
  if (limit) check = check_regressions(comparison, *limit);
  if (command.json) {
    fmt::print("{}\n", to_json_line(compare_json(comparison, check)));
  } else {
    fmt::print("{}", compare_text(comparison, check));
  }
  return static_cast<int>(check && check->failed() ? ExitCode::regression : ExitCode::ok);
}

}  // namespace epsweep
