// Runs the built program as a user would and keeps what it said.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace epsweep {

struct ProgramResult {
  int exit_code = 0;  // as a shell sees it; 124 where the time limit ended it
  std::string out, err;
};

// The program itself; `environment` is put in front ("A=1 B=2").
ProgramResult run_program(const std::string& arguments, const std::string& environment = "");
// launch/mpirun.sh with that many ranks, at most `limit_s` seconds.
ProgramResult run_on_ranks(int ranks, const std::string& arguments, int limit_s = 60);

// A directory of its own for a test, removed at the end.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  std::string path(const std::string& name) const { return path_ + "/" + name; }
  // Writes a file and returns its path.
  std::string write(const std::string& name, const std::string& text) const;

 private:
  std::string path_;
};

// A toy experiment; `changes` are lines that replace or extend its keys.
std::string toy_experiment(const std::vector<std::string>& changes = {});

// The records of a run directory.
std::vector<Json> records_of(const std::string& dir);

}  // namespace epsweep
