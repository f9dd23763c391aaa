// What one GPU (or host) of a kind has: memory, peaks and links; the files of configs/hardware/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "plan/yaml_tree.h"

namespace epsweep {

// Of one GPU. Whatever no source states stays absent.
struct HardwareRates {
  std::optional<double> bf16_tflops, fp8_tflops, fp4_tflops;  // dense, 1e12 operations/s
  std::optional<double> memory_tb_per_s;                      // 1e12 bytes/s
  std::optional<double> link_gb_per_s;   // inside the domain, one direction, 1e9 bytes/s
  std::optional<double> nic_gbit_per_s;  // beyond the domain, one direction, 1e9 bits/s
};

struct HardwareShape {
  std::string name;
  std::string source;                        // where the numbers come from
  std::optional<std::int64_t> memory_bytes;  // of one GPU; memory_gb * 1e9 as vendors count
  std::optional<int> domain_size;            // GPUs that reach each other over their own links
  HardwareRates peak;                        // as the vendor states them
  HardwareRates measured;                    // best seen by the named source
  std::string measured_source;
};

// Reads the map of a hardware file, or of an experiment's inline hardware. `base` gives the values
// of absent keys; without it `name` is required. Throws ConfigError with file, line and path, also
// for a rate that was measured above its peak.
HardwareShape read_hardware_shape(const YamlNode& node, const std::optional<HardwareShape>& base);

const std::vector<std::string>& hardware_keys();

Json hardware_json(const HardwareShape& hardware);

}  // namespace epsweep
