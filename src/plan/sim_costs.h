// What a simulated launch is declared to cost: the key `sim` of an experiment.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/stage.h"
#include "plan/yaml_tree.h"

namespace epsweep {

// What moves between ranks that reach each other in the same way takes alpha + bytes / bytes_per_s.
struct LinkCosts {
  double alpha_us = 0;
  double bytes_per_s = 1;
};

// The defaults are an H200 of eight to a host, and say no more than that they are of its order:
//   flop_per_s, weight_bytes_per_s   best GEMM and bf16 weight stream of the tables of
//                                    ai-dynamo/aiconfigurator@095f58a5 (as configs/hardware/h200)
//   intra, inter                     fits to published dispatch and combine times of Hopper: 13 us
//                                    and 230 GB/s over NVLink, 25 us and 47 GB/s for each NIC
//   the rest                         guesses: a kernel launch or two, a copy at half the memory's
//                                    rate since it reads and writes
struct SimCosts {
  // Where a stage is said to take so long it does, whatever its rows; own transfer of an exchange.
  std::array<std::optional<double>, kNumStages> stage_us = {};
  // max(operations / flop_per_s, weight bytes / weight_bytes_per_s) + launch_us. Absent: measured
  // rates of the point's hardware and dtype where they are known, else the defaults.
  std::optional<double> flop_per_s, weight_bytes_per_s;
  double launch_us = 10;
  LinkCosts self = {.alpha_us = 0, .bytes_per_s = 2.15e12};
  LinkCosts intra = {.alpha_us = 13, .bytes_per_s = 230e9};  // another rank of the domain
  LinkCosts inter = {.alpha_us = 25, .bytes_per_s = 47e9};   // of another domain

  // World ranks; every stage takes that many times what it would.
  struct RankCosts {
    int rank = 0;
    double slowdown = 1;
  };
  std::vector<RankCosts> ranks;
  // World ranks a < b; dispatch and combine of both take so much longer.
  struct SlowLink {
    int a = 0, b = 0;
    double extra_us = 0;
  };
  std::vector<SlowLink> links;

  // Log-normal factors of median 1. relative: sigma of the one that each (point, rank, iteration,
  // layer, stage) has; run: of the one that all times of a point share.
  struct Noise {
    double relative = 0, run = 0;
    std::uint64_t seed = 1;
  } noise;
};

inline constexpr double kDefaultFlopPerS = 861e12;  // bf16, and fp32 for want of a source
inline constexpr double kDefaultFp8FlopPerS = 1534e12;
inline constexpr double kDefaultFp8BlockFlopPerS = 1286e12;
inline constexpr double kDefaultWeightBytesPerS = 4.3e12;
inline constexpr double kDefaultLocalStageUs = 5;  // router, permute and unpermute each

// Throws ConfigError with file, line and path.
SimCosts read_sim_costs(const YamlNode& node);
const std::vector<std::string>& sim_keys();

Json sim_costs_json(const SimCosts& costs);

}  // namespace epsweep
