#include "app/run_results.h"

#include <ctime>
#include <filesystem>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/error.h"
#include "report/frontier_records.h"
#include "report/tables.h"

namespace epsweep {

namespace fs = std::filesystem;

std::string utc_now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

RunDirectory create_results(const RunCommand& command, const SweepSpec& spec, const Json& run) {
  if (!command.out.empty()) return RunDirectory::create(command.out, run);
  std::error_code error;
  fs::create_directories("epsweep_out", error);
  if (error) {
    throw ConfigError(
        fmt::format("epsweep_out: cannot be made here: {}; pass --out DIR", error.message()));
  }
  const std::string name =
      fmt::format("epsweep_out/{}-{:%Y%m%d-%H%M%S}", spec.name, fmt::gmtime(std::time(nullptr)));
  for (int attempt = 2;; ++attempt) {
    const std::string path = attempt == 2 ? name : fmt::format("{}-{}", name, attempt - 1);
    if (!fs::exists(path) || attempt > 100) return RunDirectory::create(path, run);
  }
}

void finish_results(RunDirectory& results, Json run_facts, int exit_code) {
  run_facts["finished_utc"] = utc_now();
  run_facts["exit_code"] = exit_code;
  const RunData run = read_run(results.path());
  if (Json frontiers = frontiers_json({run}); !frontiers.empty()) {
    run_facts["frontier"] = std::move(frontiers);
  }
  results.finish(run_facts);
  fmt::print("{}\nresults: {}\n", report_text({read_run(results.path())}), results.path());
}

}  // namespace epsweep
