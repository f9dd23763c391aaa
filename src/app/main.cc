#include <CLI/CLI.hpp>

#include "app/commands.h"
#include "base/build_info.h"
#include "base/error.h"
#include "base/log.h"

namespace {

using namespace epsweep;

constexpr const char* kFooter = R"(
Start here:
  epsweep plan configs/experiments/smoke.yaml             what would be measured; starts nothing
  launch/mpirun.sh 4 run configs/experiments/smoke.yaml   measure it on 4 ranks
  epsweep report epsweep_out/*                            the tables again

Exit codes: 0 every point measured and verified, 2 mistake in the input, 3 a check failed,
4 points skipped or stopped, 5 run-time failure, 128+N ended by signal N.)";

// Options shared by the commands that read an experiment.
void add_experiment(CLI::App& app, std::string& experiment, std::vector<std::string>& overrides) {
  app.add_option("EXPERIMENT", experiment, "YAML file, see configs/experiments/")->required();
  app.add_option("--set", overrides, "Change a value: dotted.path=value; wins over the file")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false);
}

void add_backend(CLI::App& app, std::string& backend) {
  app.add_option("--backend", backend, "Kind of device the ranks use")->capture_default_str();
}

struct CommandLine {
  CLI::App app{
      "Measures mixture-of-experts layers at several expert-parallel (EP) sizes and says "
      "which rank is slowest, and why."};
  PlanCommand plan;
  RunCommand run;
  ReportCommand report;
  ListCommand list;
  ImportModelCommand import_model;

  CommandLine() {
    const BuildInfo build = build_info();
    app.set_version_flag("--version", build.version + " " + build.git_revision);
    app.footer(kFooter);
    app.require_subcommand(1);
    add_plan();
    add_run();
    add_report();
    add_list();
    add_import();
  }

  void add_plan() {
    CLI::App& sub = *app.add_subcommand("plan", "Show every point of an experiment; starts no MPI");
    add_experiment(sub, plan.experiment, plan.overrides);
    add_backend(sub, plan.backend);
    sub.add_option("--world", plan.world_size, "Ranks of the launch that is planned")
        ->check(CLI::Range(1, 1'000'000));
    sub.add_option("--memory-gib", plan.memory_gib, "Memory of a rank that points must fit into");
    sub.add_flag("--json", plan.json, "One JSON document instead of tables");
  }

  void add_run() {
    CLI::App& sub = *app.add_subcommand("run",
                                        "Measure an experiment; start it with mpirun or srun, but "
                                        "simulations (--backend sim) as they are");
    add_experiment(sub, run.experiment, run.overrides);
    sub.add_option("--out", run.out,
                   "Directory for the results; must not hold a run yet "
                   "(default: a new one below epsweep_out/)");
    add_backend(sub, run.backend);
    sub.add_option("--device", run.device,
                   "Number of this rank's GPU (default: its number among the host's ranks)")
        ->envname("EPSWEEP_DEVICE")
        ->check(CLI::Range(0, 1023));
    sub.add_option("--ranks", run.ranks,
                   "Ranks of a simulated launch (--backend sim), all in this process (default: of "
                   "the experiment's topology, else its largest EP size)")
        ->check(CLI::Range(1, 65'536));
    sub.add_flag("--allow-shared-gpu", run.allow_shared_gpu,
                 "Several ranks may use one GPU; shows that a run works, not how fast");
    sub.add_flag("--dry-run", run.dry_run, "Check everything and show the plan, measure nothing");
    sub.add_option("--phase-limit", run.phase_limit_s,
                   "Seconds a phase may last before a hung run is ended; 0 for no limit")
        ->capture_default_str()
        ->check(CLI::NonNegativeNumber);
    sub.add_option("--inject", run.faults,
                   "For tests: a deliberate fault, KIND:rank=N[:ep_size=P]; slow_clock:rank=N"
                   "[:offset_ms=X][:drift_ppm=Y]")
        ->allow_extra_args(false);
  }

  void add_report() {
    CLI::App& sub = *app.add_subcommand("report", "Tables of finished or unfinished runs");
    sub.add_option("DIR", report.dirs, "Result directories")->required();
    CLI::Option* csv = sub.add_flag("--csv", report.csv, "Comma-separated values");
    sub.add_flag("--json", report.json, "The records as one JSON array")->excludes(csv);
  }

  void add_list() {
    CLI::App& sub = *app.add_subcommand("list", "Everything an experiment file may name");
    sub.add_flag("--json", list.json, "One JSON document instead of tables");
  }

  void add_import() {
    CLI::App& sub =
        *app.add_subcommand("import-model", "A Hugging Face config.json to a model file");
    sub.add_option("CONFIG", import_model.config, "config.json of a model")->required();
    sub.add_option("--name", import_model.name, "Name in the model file");
    sub.add_option("--out", import_model.out, "File to write (default: standard output)");
  }

  int chosen() const {
    if (app.got_subcommand("plan")) return epsweep::run(plan);
    if (app.got_subcommand("run")) return epsweep::run(run);
    if (app.got_subcommand("report")) return epsweep::run(report);
    if (app.got_subcommand("list")) return epsweep::run(list);
    return epsweep::run(import_model);
  }
};

}  // namespace

int main(int argc, char** argv) {
  CommandLine line;
  try {
    line.app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Help and version are not mistakes; everything else is one of the user's input.
    return line.app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::config);
  }
  line.run.argv.assign(argv, argv + argc);
  try {
    return line.chosen();
  } catch (const Error& error) {
    log::error(error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    log::error(error.what());
    return static_cast<int>(ExitCode::failure);
  }
}
