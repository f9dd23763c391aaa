// What the operating system says about this process and host (Linux).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace epsweep {

// CLOCK_MONOTONIC, seconds: one clock for all processes of a host, unlike MPI_Wtime.
double monotonic_s();
// CPU seconds used by all threads of this process.
double process_cpu_s();
// CPU seconds used by everything on the host since boot (user, nice, system, irq, softirq, steal);
// absent where /proc/stat cannot be read.
std::optional<double> host_busy_cpu_s();

// How often the kernel took a core from this process while it wanted to go on.
std::int64_t involuntary_switches();

// Numbers of the cores this process may run on (affinity mask), ascending; counted up from 0 where
// the kernel does not say. Never none.
std::vector<int> allowed_cores();
int num_allowed_cores();
// NUMA nodes of those cores, ascending; empty where the system does not tell.
std::vector<int> numa_nodes_of(const std::vector<int>& cores);
// Cores of the whole host.
int num_online_cores();
std::string host_name();
std::string cpu_model();
// Largest cache size the kernel names for core 0; 0 where unknown.
std::int64_t last_level_cache_bytes();
std::int64_t memory_total_bytes();
// Largest resident set of this process so far.
std::int64_t peak_resident_bytes();

}  // namespace epsweep
