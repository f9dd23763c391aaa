// Results of NVIDIA's nccl-tests as a replay file.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace epsweep {

struct NcclTestsImport {
  Json replay;                     // of format epsweep_replay
  std::vector<std::string> notes;  // what the file says that a replay file cannot hold, or not
};

// `text`: what `alltoall_perf -I 1 -J FILE` wrote, version 3 (nccl-tests 2.19: src/util.cu
// writeBenchmarkLinePreamble, writePerIterReport, writeDeviceReport; src/common.cu BenchTime). Its
// "env" is left out: it is the whole environment, secrets included.
// Throws ConfigError naming file and key for anything else: another collective or version, results
// of means only.
NcclTestsImport import_nccl_tests(const std::string& text, const std::string& path);

}  // namespace epsweep
