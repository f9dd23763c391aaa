#include "app/launch_facts.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <string_view>

#include <fmt/format.h>
#include <unistd.h>

#include "base/build_info.h"
#include "base/host_probe.h"
#include "mpi/environment.h"

namespace epsweep {
namespace {

constexpr double kLeastCoreSeconds = 0.5;

const RankPlace& place_of(const HostMap& hosts, int rank) {
  return hosts.ranks[static_cast<std::size_t>(rank)];
}

// Variables that change how a run behaves; everything else may hold secrets and stays out.
bool is_allowed(std::string_view assignment) {
  for (const std::string_view prefix :
       {"OMPI_MCA_", "PMIX_MCA_", "UCX_", "OMP_", "NCCL_", "EPSWEEP_", "CUDA_VISIBLE_DEVICES=",
        "SLURM_JOB_ID=", "SLURM_NNODES=", "SLURM_NTASKS=", "SLURM_NTASKS_PER_NODE="}) {
    if (assignment.starts_with(prefix)) return true;
  }
  return false;
}

Json environment_json() {
  Json json = Json::object();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || !is_allowed(text)) continue;
    json[std::string(text.substr(0, equals))] = std::string(text.substr(equals + 1));
  }
  return json;
}

}  // namespace

int cores_per_rank(const HostMap& hosts, int rank) {
  double share = 0;
  for (const int core : place_of(hosts, rank).cores) {
    const auto bound_here = std::ranges::count_if(hosts.ranks, [&](const RankPlace& other) {
      return other.host == place_of(hosts, rank).host &&
             std::ranges::find(other.cores, core) != other.cores.end();
    });
    share += 1.0 / static_cast<double>(bound_here);
  }
  // A hair above, since thirds do not add up to one.
  return std::max(1, static_cast<int>(share + 1e-6));
}

std::int64_t memory_per_rank(const HostMap& hosts, int rank) {
  return memory_total_bytes() / 10 * 9 / place_of(hosts, rank).local_size;
}

std::string launch_warning(const HostMap& hosts) {
  std::vector<int> everybody(hosts.ranks.size());
  std::iota(everybody.begin(), everybody.end(), 0);
  const CoreShare share = busiest_host(hosts, everybody);
  const char* yield = std::getenv("OMPI_MCA_mpi_yield_when_idle");
  if (!share.oversubscribed() || (yield != nullptr && std::string_view(yield) == "1")) return "";
  return fmt::format(
      "{} ranks share {} cores and waiting ranks do not yield: export "
      "OMPI_MCA_mpi_yield_when_idle=1 or use launch/mpirun.sh",
      share.ranks, share.cores);
}

std::optional<double> foreign_load(const HostMap& hosts, const std::vector<RankLoad>& ranks,
                                   int cores_per_host) {
  std::vector<double> own_s(static_cast<std::size_t>(hosts.num_hosts));
  for (const RankLoad& load : ranks) {
    own_s[static_cast<std::size_t>(place_of(hosts, load.rank).host)] += load.own_cpu_s;
  }
  std::optional<double> worst;
  for (const RankLoad& load : ranks) {
    const double core_s = load.wall_s * cores_per_host;
    if (!load.host_busy_s || core_s < kLeastCoreSeconds) continue;
    const double own = own_s[static_cast<std::size_t>(place_of(hosts, load.rank).host)];
    const double share = std::clamp((*load.host_busy_s - own) / core_s, 0.0, 1.0);
    worst = std::max(worst.value_or(0.0), share);
  }
  return worst;
}

Json provenance_json(const HostMap& hosts, const BackendInfo& backend,
                     const std::vector<std::string>& device_ids,
                     const std::vector<std::string>& argv) {
  const BuildInfo build = build_info();
  Json libraries = Json::object();
  for (const LibraryVersion& library : backend.libraries) libraries[library.name] = library.version;
  Json ranks = Json::array();
  for (const RankPlace& place : hosts.ranks) {
    ranks.push_back({{"host", place.host},
                     {"host_name", place.host_name},
                     {"local_rank", place.local_rank},
                     {"allowed_cores", place.allowed_cores},
                     {"cores", place.cores},
                     {"numa_nodes", place.numa_nodes},
                     {"pid", place.pid}});
    if (ranks.size() > device_ids.size() || device_ids[ranks.size() - 1].empty()) continue;
    ranks.back()["device_id"] = device_ids[ranks.size() - 1];
  }
  return {{"epsweep_version", build.version},
          {"git_revision", build.git_revision},
          {"build_type", build.build_type},
          {"sanitizers", build.sanitizers},
          {"compiler", build.compiler},
          {"argv", argv},
          {"mpi_library", mpi_library_version()},
          {"device", backend.device},
          {"libraries", std::move(libraries)},
          {"cpu_model", cpu_model()},
          {"last_level_cache_bytes", last_level_cache_bytes()},
          {"memory_total_bytes", memory_total_bytes()},
          {"world_size", hosts.ranks.size()},
          {"num_hosts", hosts.num_hosts},
          {"ranks", std::move(ranks)},
          {"environment", environment_json()}};
}

}  // namespace epsweep
