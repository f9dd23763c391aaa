#include "support/program.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include <fmt/format.h>
#include <sys/wait.h>

#include "base/error.h"
#include "base/text.h"
#include "report/result_file.h"

namespace epsweep {
namespace {

namespace fs = std::filesystem;

ProgramResult run_shell(const std::string& command, int limit_s) {
  const TempDir dir;
  const std::string line = fmt::format("timeout -k 5 {} {} >{} 2>{} </dev/null", limit_s, command,
                                       dir.path("out"), dir.path("err"));
  const int status = std::system(line.c_str());
  return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          .out = read_text_file(dir.path("out")),
          .err = read_text_file(dir.path("err"))};
}

}  // namespace

ProgramResult run_program(const std::string& arguments, const std::string& environment) {
  return run_shell(fmt::format("env {} {} {}", environment, EPSWEEP_PROGRAM, arguments), 60);
}

ProgramResult run_on_ranks(int ranks, const std::string& arguments, int limit_s) {
  return run_shell(fmt::format("env EPSWEEP_PROGRAM={} {}/launch/mpirun.sh {} {}", EPSWEEP_PROGRAM,
                               EPSWEEP_SOURCE_DIR, ranks, arguments),
                   limit_s);
}

TempDir::TempDir() {
  std::string pattern = (fs::temp_directory_path() / "epsweep_test.XXXXXX").string();
  EPS_EXPECT(mkdtemp(pattern.data()) != nullptr, "no temporary directory");
  path_ = pattern;
}

TempDir::~TempDir() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string TempDir::write(const std::string& name, const std::string& text) const {
  std::ofstream(path(name)) << text;
  return path(name);
}

std::string toy_experiment(const std::vector<std::string>& changes) {
  std::map<std::string, std::string> lines = {
      {"name", "name: toy"},
      {"model",
       "model: {name: m, hidden_dim: 64, ffn_dim: 32, num_experts: 8, top_k: 2, "
       "num_moe_layers: 1}"},
      {"ep_sizes", "ep_sizes: [1, 2]"},
      {"concurrency", "concurrency: {fixed_global: [16]}"},
      {"routing", "routing: uniform"},
      {"iterations", "iterations: 3"},
      {"warmup", "warmup: 1"},
      {"ceilings", "ceilings: skip"},  // they take longer than everything else together
  };
  for (const std::string& change : changes) lines[change.substr(0, change.find(':'))] = change;
  std::string text;
  for (const auto& [key, line] : lines) text += line + "\n";
  return text;
}

std::vector<Json> records_of(const std::string& dir) {
  return read_run(dir).points;
}

}  // namespace epsweep
