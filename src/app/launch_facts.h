// What a launch ran on: goes into run.json and decides how points are labelled.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
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

// Share of the busiest host's cores that others used between start and now, 0 to 1; absent where
// the system does not tell. All ranks take part; the value is on rank 0.
class ForeignLoad {
 public:
  // Collective over the world, like finish().
  ForeignLoad(const Comm& world, const HostMap& hosts);
  std::optional<double> finish() const;

 private:
  const Comm& world_;
  const HostMap& hosts_;
  double begin_s_, own_begin_s_;
  std::optional<double> busy_begin_s_;
};

// Versions, hosts, ranks, and the allow-listed part of the environment.
Json provenance_json(const HostMap& hosts, const std::string& backend_device,
                     const std::vector<std::string>& argv);

}  // namespace epsweep
