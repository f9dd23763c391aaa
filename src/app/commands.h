// The commands of the program. Each returns an exit code and throws Error for what ends it early.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace epsweep {

inline constexpr const char* kDefaultBackend = "cpu";

struct PlanCommand {
  std::string experiment;
  std::vector<std::string> overrides;
  std::string backend = kDefaultBackend;
  int world_size = 0;                // 0: not said
  std::optional<double> memory_gib;  // of a rank
  bool json = false;
};
int run(const PlanCommand& command);

struct RunCommand {
  std::string experiment;
  std::vector<std::string> overrides;
  std::string out;  // empty: a name is made up below epsweep_out/
  std::string backend = kDefaultBackend;
  std::vector<std::string> faults;
  double phase_limit_s = 600;
  std::optional<int> device;  // number of this rank's
  std::optional<int> ranks;   // of a simulated launch
  bool allow_shared_gpu = false;
  bool counters = false;
  bool dry_run = false;
  std::vector<std::string> argv;
};
// Starts MPI, as no other command does but `predict` with virtual ranks.
int run(const RunCommand& command);

// Points that no machine here can run, through the simulation with costs of elsewhere.
struct PredictCommand {
  std::string experiment;
  std::vector<std::string> overrides;
  std::string out;
  std::string calibration;      // directory of a run; empty: by hardware alone
  std::string ffn_calibration;  // more expert FFNs; empty for none
  std::string hardware;         // name of a hardware file; empty: by calibration
  std::optional<int> ranks;     // of the launch that is predicted
  // Measures the compute of this EP size on the ranks of the present launch; absent: predicts all.
  std::optional<int> virtual_ep;
  std::string virtual_ranks = "4";        // shards measured of a point, or "all"
  int virtual_iterations = 10;            // most of each
  std::string backend = kDefaultBackend;  // that measures them
  std::vector<std::string> argv;
};
// Starts MPI with `virtual_ep` only.
int run(const PredictCommand& command);

struct ReportCommand {
  std::vector<std::string> dirs;
  bool csv = false, json = false;
  bool stages = false;  // a table of stages for every point
  std::string ranks;    // a table of ranks for every point: "few" or "all"; empty for none
};
int run(const ReportCommand& command);

// Two runs point by point, or two choices of one run.
struct CompareCommand {
  std::vector<std::string> dirs;    // one or two
  std::vector<std::string> a, b;    // KEY=VALUE
  std::vector<std::string> across;  // axes that partners may differ in
  std::vector<std::string> allow;   // fields whose difference is overlooked
  std::string fail_on;              // "regression:5%"; empty for nothing
  std::string few_repeats = "allow";
  bool json = false;
};
int run(const CompareCommand& command);

// Measurements of other tools, and of stored runs from their arrays of times.
struct ReplayCommand {
  std::vector<std::string> paths;  // run directories and files
  bool json = false;
};
int run(const ReplayCommand& command);

struct ListCommand {
  bool json = false;
};
int run(const ListCommand& command);

struct ImportModelCommand {
  std::string config;
  std::string name;  // empty: the config's folder name
  std::string out;   // empty: standard output
};
int run(const ImportModelCommand& command);

struct ImportNcclTestsCommand {
  std::string result;  // of nccl-tests, JSON
  std::string out;     // empty: standard output
};
int run(const ImportNcclTestsCommand& command);

}  // namespace epsweep
