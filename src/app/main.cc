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
4 points skipped or stopped, 5 run-time failure, 6 a regression (compare --fail-on), 128+N ended by
signal N.)";

constexpr const char* kReplayFooter = R"(
The smallest file: two ranks, one iteration of one stage, nobody knows how ranks started:
  {"format": "epsweep_replay", "schema_version": "1.0", "tool": "my_bench 1.2", "points": [
    {"name": "decode", "ep_size": 2, "regime": "unknown", "warmup": null, "ranks": [
      {"rank": 0, "group": 0, "stages": {"dispatch": {"duration_s": [31e-6]}}},
      {"rank": 1, "group": 0, "stages": {"dispatch": {"duration_s": [35e-6]}}}]}]}
With begin_s and end_s instead of duration_s and a clock for every rank, waiting is told from moving.
Exit codes: 0; 2 a mistake in the input; 3 a point failed its check or did not use its transport.)";

constexpr const char* kCompareFooter = R"(
Points are partners where all axes are equal but repeat and those that --a and --b choose differently
or --across names:
  epsweep compare OLD NEW                                            two builds
  epsweep compare RUN --a grouped_gemm=loop --b grouped_gemm=onednn  two kernels of one run
  epsweep compare RUN_1 RUN_2 --across topology                      two topologies
Exit codes: 0; 2 a mistake in the input, or a difference that is not allowed; 6 --fail-on.)";

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
  PredictCommand predict;
  ReportCommand report;
  CompareCommand compare;
  ReplayCommand replay;
  ListCommand list;
  ImportModelCommand import_model;
  ImportNcclTestsCommand import_nccl_tests;

  CommandLine() {
    const BuildInfo build = build_info();
    app.set_version_flag("--version", build.version + " " + build.git_revision);
    app.footer(kFooter);
    app.require_subcommand(1);
    add_plan();
    add_run();
    add_predict();
    add_report();
    add_compare();
    add_replay();
    add_list();
    add_import();
    add_import_nccl_tests();
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
    sub.add_flag("--counters", run.counters,
                 "Count cycles, instructions and cache misses of the timed iterations, where the "
                 "kernel allows it (CPU)");
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

  void add_predict() {
    CLI::App& sub = *app.add_subcommand(
        "predict",
        "EP sizes that were not run, from a run's records or a hardware file; with --virtual-ep "
        "their compute measured on the ranks that mpirun or srun started, or on one");
    add_experiment(sub, predict.experiment, predict.overrides);
    CLI::Option* calibration = sub.add_option("--calibration", predict.calibration,
                                              "Directory of a run whose times costs come from");
    CLI::Option* ffn =
        sub.add_option(
               "--ffn-calibration", predict.ffn_calibration,
               "Directory of a run with more expert FFNs: same widths, any number of experts")
            ->needs(calibration);
    sub.add_option("--hardware", predict.hardware,
                   "Name or path of a hardware file: rates of its own, nothing calibrated")
        ->excludes(calibration);
    sub.add_option("--out", predict.out,
                   "Directory for the results (default: a new one below epsweep_out/)");
    sub.add_option("--ranks", predict.ranks, "Ranks of the launch, as of run --backend sim")
        ->check(CLI::Range(1, 65'536));
    CLI::Option* virtual_ep =
        sub.add_option("--virtual-ep", predict.virtual_ep,
                       "This EP size, with the compute of its ranks measured here and its exchange "
                       "predicted: 'measured compute + predicted exchange'")
            ->excludes(ffn)
            ->check(CLI::Range(1, 65'536));
    sub.add_option("--virtual-ranks", predict.virtual_ranks,
                   "Ranks of it to measure for each point, heaviest and lightest included, or all; "
                   "those between "
                   "are interpolated by rows")
        ->capture_default_str()
        ->needs(virtual_ep);
    sub.add_option("--virtual-iterations", predict.virtual_iterations,
                   "Most iterations of each of them")
        ->capture_default_str()
        ->check(CLI::Range(1, 1'000'000))
        ->needs(virtual_ep);
    sub.add_option("--backend", predict.backend, "Kind of device that measures them")
        ->capture_default_str()
        ->needs(virtual_ep);
  }

  void add_report() {
    CLI::App& sub = *app.add_subcommand("report", "Tables of finished or unfinished runs");
    sub.add_option("DIR", report.dirs, "Result directories")->required();
    CLI::Option* csv = sub.add_flag("--csv", report.csv, "Comma-separated values");
    CLI::Option* json =
        sub.add_flag("--json", report.json, "The records as one JSON array")->excludes(csv);
    CLI::Option* stages =
        sub.add_flag("--stages", report.stages, "A table of stages for each point instead");
    CLI::Option* ranks =
        sub.add_option(
               "--ranks", report.ranks,
               "A table of ranks for each point instead; of more than 64 the 32 slowest and "
               "8 fastest, or all")
            ->expected(0, 1)
            ->default_str("few")
            ->check(CLI::IsMember({"few", "all"}));
    for (CLI::Option* option : {stages, ranks}) option->excludes(csv)->excludes(json);
  }

  void add_compare() {
    CLI::App& sub = *app.add_subcommand(
        "compare", "Two runs, or two choices of one, point by point: what got better, what worse");
    sub.add_option("DIR", compare.dirs, "One result directory or two")->required()->expected(1, 2);
    const auto add_names = [&sub](const char* name, std::vector<std::string>& names,
                                  const char* type, const char* help) {
      sub.add_option(name, names, help)->type_name(type)->allow_extra_args(false);
    };
    add_names("--a", compare.a, "KEY=VALUE", "Only points of A with that value of an axis");
    add_names("--b", compare.b, "KEY=VALUE", "Only points of B with that value of an axis");
    add_names("--across", compare.across, "KEY", "An axis that compared points may differ in");
    add_names("--allow", compare.allow, "FIELD",
              "Compare although FIELD differs, and say so: concurrency, dtype, hardware, model, "
              "regime, routing_checksum or state");
    sub.add_option("--fail-on", compare.fail_on,
                   "regression:5% ends with exit code 6 where latency or throughput per rank is "
                   "worse by more");
    sub.add_option("--few-repeats", compare.few_repeats,
                   "Whether such a change with too few repeats to show it fails too")
        ->capture_default_str()
        ->check(CLI::IsMember({"allow", "fail"}));
    sub.add_flag("--json", compare.json, "One JSON document instead of tables");
    sub.footer(kCompareFooter);
  }

  void add_replay() {
    CLI::App& sub = *app.add_subcommand(
        "replay", "The report again, computed from recorded times: of runs, or of other tools");
    sub.add_option("PATH", replay.paths,
                   "Result directories, and JSON files in the form of src/report/replay_format.md")
        ->required();
    sub.add_flag("--json", replay.json, "The records as one JSON array");
    sub.footer(kReplayFooter);
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

  void add_import_nccl_tests() {
    CLI::App& sub = *app.add_subcommand("import-nccl-tests",
                                        "JSON of nccl-tests' alltoall_perf to a file for replay");
    sub.add_option("RESULT", import_nccl_tests.result, "What alltoall_perf -I 1 -J RESULT wrote")
        ->required();
    sub.add_option("--out", import_nccl_tests.out, "File to write (default: standard output)");
  }

  int chosen() const {
    if (app.got_subcommand("plan")) return epsweep::run(plan);
    if (app.got_subcommand("run")) return epsweep::run(run);
    if (app.got_subcommand("predict")) return epsweep::run(predict);
    if (app.got_subcommand("report")) return epsweep::run(report);
    if (app.got_subcommand("compare")) return epsweep::run(compare);
    if (app.got_subcommand("replay")) return epsweep::run(replay);
    if (app.got_subcommand("list")) return epsweep::run(list);
    if (app.got_subcommand("import-nccl-tests")) return epsweep::run(import_nccl_tests);
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
  line.predict.argv = line.run.argv;
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
