// A run directory: run.json, points.jsonl, timings/NNNN.npy, timings/NNNN_chains.npy and the
// derived points.csv.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "report/chain_table.h"
#include "report/file_output.h"
#include "report/timing_table.h"

namespace epsweep {

// The one writer of a run. Failures after create() are RunErrors that name the file.
class RunDirectory {
 public:
  // Makes the directory (its parent must exist; an existing one must hold no run) and writes
  // run.json: schema version, the members of `run`, and the formulas of the records.
  // Of two writers that start at once, one gets the ConfigError. Throws ConfigError with the
  // reason where the directory cannot be used, RunError where the disk is full.
  static RunDirectory create(const std::string& path, const Json& run);

  const std::string& path() const { return path_; }

  // Appends one line and returns after it is on the disk. After a failure the file holds the
  // earlier records only.
  void append(const Json& record);

  // Return the file's name relative to the directory.
  std::string write_timings(int index, const TimingTable& table);
  std::string write_timings(int index, const ChainTable& table);

  // Rewrites run.json, then derives points.csv from points.jsonl as it lies on the disk.
  void finish(const Json& run);

 private:
  RunDirectory(std::string path, FileHandle points)
      : path_(std::move(path)), points_(std::move(points)) {}

  std::string path_;
  FileHandle points_;
  std::int64_t num_bytes_ = 0;  // of complete records
};

struct RunData {
  std::string dir;
  Json run;
  std::vector<Json> points;
};

// Forgives one thing: a last line that was cut off while it was written. Throws ConfigError with
// file and line for anything else that is malformed or of another schema major.
RunData read_run(const std::string& dir);

}  // namespace epsweep
