// Every rank's device, and whether ranks have one each.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/backend.h"
#include "mpi/host_map.h"

namespace epsweep {

struct DeviceSettings {
  std::string backend;
  std::optional<int> device;  // chosen for this rank
  DeviceSharing sharing = DeviceSharing::refuse;
  WorkCounting counting = WorkCounting::off;
};

// Two ranks of a host with the same device, or nothing.
struct SharedDevice {
  int first_rank = 0, second_rank = 0;
  std::string device_id;
};
// device_ids: of all ranks; empty ids are devices that are not counted, as CPUs are.
std::optional<SharedDevice> first_shared_device(const HostMap& hosts,
                                                const std::vector<std::string>& device_ids);

// Most of the given world ranks on one device; 0 where devices are not counted.
int ranks_on_busiest_device(const HostMap& hosts, const std::vector<std::string>& device_ids,
                            const std::vector<int>& working_ranks);

struct RankBackend {
  std::unique_ptr<Backend> backend;
  std::vector<std::string> device_ids;  // of all ranks, on rank 0
};

// Collective over the world. Throws ConfigError, the same on every rank, if a rank has no device or
// not one of its own.
RankBackend make_rank_backend(const Comm& world, const HostMap& hosts,
                              const DeviceSettings& settings);

}  // namespace epsweep
