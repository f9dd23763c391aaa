// The parts of an experiment that say what it is to be served on: hardware, serving, objective.
#include <filesystem>

#include "base/text.h"
#include "plan/sweep_spec_parts.h"

namespace epsweep {
namespace {

HardwareShape read_hardware_file(const YamlNode& node, const std::string& experiment_file,
                                 const SpecSources& sources) {
  const std::string path = find_named_file(node, experiment_file, sources.hardware_dir, "hardware");
  return read_hardware_shape(parse_yaml(read_text_file(path), path), std::nullopt);
}

HardwareShape read_hardware(const YamlNode& node, const std::string& file,
                            const SpecSources& sources) {
  if (node.kind != YamlNode::Kind::map) return read_hardware_file(node, file, sources);
  YamlNode own_keys = node;
  std::optional<HardwareShape> base;
  std::erase_if(own_keys.entries, [&](const YamlEntry& entry) {
    if (entry.key != "base") return false;
    base = read_hardware_file(entry.value, file, sources);
    return true;
  });
  return read_hardware_shape(own_keys, base);
}

}  // namespace

void read_deployment(const MapReader& top, const std::string& file, const SpecSources& sources,
                     SweepSpec& spec) {
  if (const YamlNode* node = top.find("hardware")) {
    spec.hardware = read_hardware(*node, file, sources);
  }
  if (const YamlNode* node = top.find("serving")) {
    spec.serving = read_serving(*node);
    if (!spec.hardware) fail_at(*node, "needs 'hardware', whose memory it divides");
    if (!spec.hardware->memory_bytes) {
      fail_at(*node, fmt::format("hardware {} states no memory to divide; give it a memory_gb: "
                                 "hardware: {{base: {}, memory_gb: ...}}",
                                 spec.hardware->name, spec.hardware->name));
    }
  }
  if (const YamlNode* node = top.find("latency_objective_us")) {
    spec.latency_objective_us = read_number(*node, 1e-3, 1e12);
  }
}

}  // namespace epsweep
