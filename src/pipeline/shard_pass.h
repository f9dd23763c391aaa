// What one rank computes of an EP size whose other ranks are not there, timed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/stage.h"
#include "device/backend.h"
#include "pipeline/expert_weights.h"
#include "pipeline/rank_work.h"

namespace epsweep {

struct ShardHooks {
  // Returns when all ranks that time shards have come: they use a host's memory together.
  std::function<void()> align;
  // Whether all of them agreed to stop (a signal came); asked before every iteration.
  std::function<bool()> stop;
  // Told before anything that may take long.
  std::function<void(const std::string& phase)> enter_phase;
};

struct ShardIterations {
  int warmup = 1, timed = 1;  // at least one each
};

// Seconds [timed iterations][routings][stages]. Ranks meet before every stage, and weights leave
// the caches before each step's layers where the point says so, as when a point is timed with all
// its ranks (AlignedPass). Exchanges take what copying their rows on one rank takes (AbsentPeers),
// which is nobody's time; ranks do not meet between such a copy and the stage behind it, expert_ffn
// or unpermute, so that a device is busy until the host has enqueued the stage. Router and permute
// begin on an idle device: the launch of their first kernel counts. Every iteration goes through
// all routings. Empty where ranks agreed to stop.
//
// All ranks call this at the same place with the same numbers of iterations, layers and steps.
// Throws RunError if experts got other rows than the trace says.
std::vector<double> time_shard(const RankWork& work, Backend& backend, ExpertWeights& weights,
                               const ShardIterations& iterations, const ShardHooks& hooks);

}  // namespace epsweep
