// Sweep points and files for tests of the workload.
#pragma once

#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "base/error.h"
#include "plan/sweep_point.h"
#include "workload/distribution.h"

namespace epsweep {

inline const std::string kRoutingDir = EPSWEEP_SOURCE_DIR "/configs/routing/";

// `distribution` with its default parameters, and the shipped files (64 experts, top_k 8) where it
// wants one.
inline Routing default_routing(const std::string& distribution) {
  Routing routing;
  routing.distribution = distribution;
  for (const ParamSpec& spec : DistributionCatalog::instance().at(distribution).params) {
    if (spec.presence == ParamSpec::Presence::when_said) continue;
    if (spec.kind != ParamSpec::Kind::file) {
      routing.params.push_back({spec.name, spec.default_value});
    } else {
      routing.file = kRoutingDir + (spec.name == "trace_file" ? "olmoe_like_trace.jsonl"
                                                              : "olmoe_like_counts.json");
    }
  }
  return routing;
}

inline void set_param(Routing& routing, const std::string& name, double value) {
  for (Routing::Param& param : routing.params) {
    if (param.name == name) param.value = value;
  }
}

// For max_over_mean instead of the distribution's skew parameter.
inline void ask_for(Routing& routing, double max_over_mean) {
  const std::string skew = DistributionCatalog::instance().at(routing.distribution).skew.param;
  std::erase_if(routing.params, [&](const Routing::Param& param) { return param.name == skew; });
  routing.params.push_back({kMaxOverMean, max_over_mean});
}

inline SweepPoint sample_point(const std::string& distribution, int num_experts, int top_k,
                               std::int64_t num_tokens, int ep_size = 1) {
  SweepPoint point;
  point.model.name = "sample";
  point.model.hidden_dim = 32;
  point.model.num_experts = num_experts;
  point.model.top_k = top_k;
  point.ep_size = ep_size;
  point.concurrency.tokens = num_tokens;
  point.routing = default_routing(distribution);
  if (distribution == "group_limited") {  // half of four groups, or all if top_k needs them
    point.model.router.num_groups = 4;
    point.model.router.topk_groups = 2 * top_k <= num_experts ? 2 : 4;
  }
  return point;
}

// A file that lives as long as the test program's temporary directory; names must be unique,
// because recorded files are read once per process.
inline std::string write_file(const std::string& name, const std::string& text) {
  const std::string path = ::testing::TempDir() + "epsweep_" + name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

// What a call's ConfigError says; empty if it throws none.
template <typename Call>
std::string config_error(Call call) {
  try {
    call();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return {};
}

}  // namespace epsweep
