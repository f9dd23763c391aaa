// What a launch ran on: goes into run.json and decides how points are labelled.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "device/backend.h"
#include "mpi/host_map.h"

namespace epsweep {

// Cores one rank may use: each of its cores divided by the ranks bound to it, at least one in all.
int cores_per_rank(const HostMap& hosts, int rank);
// Memory one rank may use: its share of 90 % of its host's.
std::int64_t memory_per_rank(const HostMap& hosts, int rank);

// What is wrong with the launch but not enough to refuse it; empty if nothing is. Open MPI lets
// waiting ranks spin where it does not know that they share cores, which makes exchanges hundreds
// of times slower.
std::string launch_warning(const HostMap& hosts);

// What one working rank saw while it was timed.
struct RankLoad {
  int rank = 0;  // in the world
  double wall_s = 0, own_cpu_s = 0;
  std::optional<double> host_busy_s;
};

// Share of the cores of the most disturbed host that programs other than the working ranks used
// meanwhile, 0 to 1. Absent where the system does not tell, or where the cores had less than 0.5 s
// together: /proc/stat counts in ticks of 10 ms.
std::optional<double> foreign_load(const HostMap& hosts, const std::vector<RankLoad>& ranks,
                                   int cores_per_host);

// Versions, hosts, ranks, and the allow-listed part of the environment. device_ids: by rank, or
// empty on ranks that do not know them.
Json provenance_json(const HostMap& hosts, const BackendInfo& backend,
                     const std::vector<std::string>& device_ids,
                     const std::vector<std::string>& argv);

}  // namespace epsweep
