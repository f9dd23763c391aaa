#include "report/nccl_tests_import.h"

#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "report/json_at.h"
#include "report/replay_file.h"
#include "report/times_json.h"

namespace epsweep {
namespace {

constexpr std::int64_t kVersion = 3;
constexpr double kSPerUs = 1e-6;
// So many for each of a process's ranks are still a count of a replay file.
constexpr std::int64_t kMostBytes = kMostCount / (64 * 64);

struct Setup {
  std::string program;  // alltoall_perf
  int ranks_per_process = 1;
  std::int64_t warmup = 0, aggregated = 1;
  std::string regime;
  std::vector<std::string> hosts;  // by process; empty where devices are not listed one a process
  std::vector<int> groups;         // by process
};

// "-z 3", "-z3", "--blocking 3", "--blocking=3"; the last one counts.
std::string blocking_of(const std::vector<std::string>& args) {
  std::string blocking = "of an unknown kind";
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string& arg = args[i];
    if ((arg == "-z" || arg == "--blocking") && i + 1 < args.size()) blocking = args[i + 1];
    if (arg.starts_with("-z") && arg.size() > 2) blocking = arg.substr(2);
    if (arg.starts_with("--blocking=")) blocking = arg.substr(std::string("--blocking=").size());
  }
  return blocking;
}

// With 3 an event pair leaves the barrier out. With 1 and 2 the time runs from one operation's
// launch to the next one's, host and barrier included.
std::string regime_of(const JsonAt& config, const std::string& blocking,
                      std::vector<std::string>& notes) {
  const bool blocks = config.at("blocking_collectives").name_of({"true", "false"}) == "true";
  if (!blocks) return kChained;
  if (blocking == "3") return kAligned;
  notes.push_back(fmt::format(
      "blocking {}: times include what the host does between operations, so the regime is unknown; "
      "-z 3 times operations that ranks enter together",
      blocking));
  return "unknown";
}

std::string base_name(const std::string& path) {
  return path.substr(path.find_last_of('/') + 1);
}

// Devices are listed by process: of each the first one.
void read_devices(const JsonAt& config, Setup& setup) {
  if (!config.has("devices")) return;
  for (const JsonAt& device : config.at("devices").items()) {
    setup.hosts.push_back(device.at("hostname").text());
    setup.groups.push_back(device.at("group").small_count());
  }
}

Setup read_setup(const JsonAt& root, std::vector<std::string>& notes) {
  Setup setup;
  std::vector<std::string> args;
  for (const JsonAt& arg : root.at("args").items()) args.push_back(arg.text());
  setup.program = base_name(args.front());
  if (setup.program.find("alltoall") == std::string::npos) {
    root.at("args").refuse(fmt::format(
        "'{}' is not an all-to-all: results of alltoall_perf and alltoallv_perf can be replayed",
        setup.program));
  }
  const JsonAt config = root.at("config");
  setup.ranks_per_process =
      config.at("nthreads").small_count(1, 64) * config.at("ngpus").small_count(1, 64);
  setup.warmup = config.at("warmup_iters").count();
  setup.aggregated = config.at("aggregated_iterations").count(1);
  setup.regime = regime_of(config, blocking_of(args), notes);
  read_devices(config, setup);
  if (setup.aggregated > 1) {
    notes.push_back(fmt::format("each time is the mean of {} operations launched as one group",
                                setup.aggregated));
  }
  if (setup.ranks_per_process > 1) {
    notes.push_back(fmt::format(
        "a row of times is the slowest of a process's {} ranks: ranks cannot be told apart",
        setup.ranks_per_process));
  }
  return setup;
}

// What a replay file may hold: nothing negative, and no more than three years.
constexpr double kMostUs = 1e14;

std::vector<double> seconds(const JsonAt& list) {
  std::vector<double> values = list.numbers();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!(values[i] >= 0 && values[i] <= kMostUs)) {
      list.refuse(fmt::format("iteration {} (from 0): {} us is no time", i, values[i]));
    }
    values[i] *= kSPerUs;
  }
  return values;
}

// By process; where there is only one the file has no matrix.
std::vector<std::vector<double>> rows_of(const JsonAt& per_iteration) {
  const char* const matrix = "per_process_max_times_us";
  if (!per_iteration.has(matrix)) return {seconds(per_iteration.at("times_us"))};
  std::vector<std::vector<double>> rows;
  for (const JsonAt& row : per_iteration.at(matrix).items()) {
    rows.push_back(seconds(row));
    if (rows.back().size() != rows.front().size()) {
      row.refuse(fmt::format("{} iterations, the first process has {}", rows.back().size(),
                             rows.front().size()));
    }
  }
  return rows;
}

// One group where the devices' groups are not known by row.
std::vector<int> groups_of(const Setup& setup, std::size_t num_rows) {
  if (setup.groups.size() != num_rows) return std::vector<int>(num_rows, 0);
  return setup.groups;
}

Json point_of(const Setup& setup, const JsonAt& result, const JsonAt& per_iteration, int repeat) {
  const std::int64_t size = result.at("size").count(0, kMostBytes);
  const std::vector<std::vector<double>> rows = rows_of(per_iteration);
  const std::vector<int> groups = groups_of(setup, rows.size());
  std::map<int, int> rows_of_group;
  for (const int group : groups) ++rows_of_group[group];
  const int group_rows = rows_of_group.begin()->second;
  for (const auto& [group, count] : rows_of_group) {
    if (count != group_rows) result.refuse("groups of different sizes (NCCL_TESTS_SPLIT)");
  }
  Json ranks = Json::array();
  for (std::size_t row = 0; row < rows.size(); ++row) {
    Json rank = {{"rank", row},
                 {"group", groups[row]},
                 {"stages", {{kBareExchange, {{"duration_s", rows[row]}}}}}};
    if (setup.hosts.size() == rows.size()) rank["host"] = setup.hosts[row];
    // Of alltoall the size is what every rank sends, to itself too; of alltoallv the most of any.
    if (setup.program.find("alltoallv") == std::string::npos) {
      rank["bytes"] = {
          {kBareExchange, {{"bytes", size * setup.ranks_per_process}, {"letter", "A"}}}};
    }
    ranks.push_back(std::move(rank));
  }
  Json point = {{"name", fmt::format("{} {} bytes", setup.program, size)},
                {"ep_size", group_rows * setup.ranks_per_process},
                {"repeat", repeat},
                {"regime", setup.regime},
                {"warmup", setup.warmup},
                {"ranks_per_row", setup.ranks_per_process}};
  const JsonAt total = result.at("out_of_place");
  if (total.has("nwrong")) point["check"] = total.at("nwrong").number() > 0 ? "failed" : "passed";
  point["ranks"] = std::move(ranks);
  return point;
}

}  // namespace

NcclTestsImport import_nccl_tests(const std::string& text, const std::string& path) {
  const Json json = parse_json(text, path);
  const JsonAt root(json, path);
  if (!root.is_object() || !root.has("version") || !root.has("results")) {
    root.refuse("not a JSON file of nccl-tests: no 'version' and 'results' in it");
  }
  if (const std::int64_t version = root.at("version").count(); version != kVersion) {
    root.at("version").refuse(fmt::format("{} is not readable, this build reads 3", version));
  }
  NcclTestsImport import;
  const Setup setup = read_setup(root, import.notes);
  Json points = Json::array();
  std::map<std::int64_t, int> repeats_of_size;
  std::size_t without = 0;
  for (const JsonAt& result : root.at("results").items()) {
    if (!result.has("out_of_place") || !result.has("out_of_place_per_iter")) {
      ++without;
      continue;
    }
    const int repeat = repeats_of_size[result.at("size").count()]++;
    points.push_back(point_of(setup, result, result.at("out_of_place_per_iter"), repeat));
  }
  if (points.empty()) {
    root.at("results").refuse(
        "means only: -I 1 has nccl-tests write the time of every iteration and process");
  }
  if (without > 0) {
    import.notes.push_back(
        fmt::format("{} results without times by iteration were left out", without));
  }
  import.notes.insert(
      import.notes.end(),
      {"times are CUDA events of each process's own device: durations without a common clock, so "
       "there is no wait, transfer or aggregate bandwidth",
       "no transports: with NCCL_DEBUG=INFO the log names them; add 'transports' and "
       "'expected_transport' by hand",
       "all iterations are kept, those that -K leaves out of nccl-tests' own summary too",
       "in-place results, bandwidths of means, and the environment were left out"});
  if (setup.program.find("alltoallv") != std::string::npos) {
    import.notes.push_back("no bytes: of alltoallv the file has the largest rank's only");
  }
  std::string version = "nccl-tests " + setup.program;
  if (root.has("nccl_version")) {
    version += fmt::format(", NCCL {}", root.at("nccl_version").count());
  }
  import.replay = {{"format", kReplayFormat},
                   {"schema_version", kReplaySchemaVersion},
                   {"tool", version},
                   {"notes", import.notes},
                   { "points",
                     std::move(points) }};
  return import;
}

}  // namespace epsweep
