#include "app/rank_backend.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "app/launch_facts.h"
#include "base/error.h"

namespace epsweep {
namespace {

std::unique_ptr<Backend> make_own(const Comm& world, const HostMap& hosts,
                                  const DeviceSettings& settings) {
  const RankPlace& place = hosts.ranks[static_cast<std::size_t>(world.rank())];
  return BackendCatalog::instance()
      .at(settings.backend)
      .make({.num_threads = cores_per_rank(hosts, world.rank()),
             .memory_bytes = memory_per_rank(hosts, world.rank()),
             .local_rank = place.local_rank,
             .local_size = place.local_size,
             .device = settings.device,
             .sharing = settings.sharing,
             .counting = settings.counting});
}

void agree(const Comm& world, const std::string& own_problem) {
  const std::string problem = world.first_text(own_problem);
  if (!problem.empty()) throw ConfigError(problem);
}

}  // namespace

std::optional<SharedDevice> first_shared_device(const HostMap& hosts,
                                                const std::vector<std::string>& device_ids) {
  std::map<std::pair<int, std::string>, int> rank_of;
  for (std::size_t rank = 0; rank < device_ids.size(); ++rank) {
    if (device_ids[rank].empty()) continue;
    const auto [first, is_new] =
        rank_of.try_emplace({hosts.ranks[rank].host, device_ids[rank]}, static_cast<int>(rank));
    if (!is_new) return SharedDevice{first->second, static_cast<int>(rank), device_ids[rank]};
  }
  return std::nullopt;
}

int ranks_on_busiest_device(const HostMap& hosts, const std::vector<std::string>& device_ids,
                            const std::vector<int>& working_ranks) {
  std::map<std::pair<int, std::string>, int> ranks;
  int most = 0;
  for (const int rank : working_ranks) {
    const auto at = static_cast<std::size_t>(rank);
    if (device_ids[at].empty()) continue;
    most = std::max(most, ++ranks[{hosts.ranks[at].host, device_ids[at]}]);
  }
  return most;
}

RankBackend make_rank_backend(const Comm& world, const HostMap& hosts,
                              const DeviceSettings& settings) {
  RankBackend result;
  std::string problem;
  try {
    result.backend = make_own(world, hosts, settings);
  } catch (const ConfigError& error) {
    problem = error.what();
  }
  agree(world, problem);
  result.device_ids = world.gather(result.backend->describe().device_id, 0);
  if (settings.sharing == DeviceSharing::refuse && world.rank() == 0) {
    if (const auto shared = first_shared_device(hosts, result.device_ids)) {
      problem = fmt::format(
          "ranks {} and {} use the same device, {}: start one rank per device, or let them share "
          "with --allow-shared-gpu",
          shared->first_rank, shared->second_rank, shared->device_id);
    }
  }
  agree(world, problem);
  return result;
}

}  // namespace epsweep
