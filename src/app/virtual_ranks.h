// Ranks of an EP size that this launch does not have: those that are present take their place one
// after the other and time what they compute.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/rank_backend.h"
#include "app/watchdog.h"
#include "base/json.h"
#include "costs/virtual_shards.h"
#include "pipeline/expert_weights.h"
#include "pipeline/point_runner.h"
#include "plan/plan.h"
#include "report/point_record.h"
#include "workload/trace_cache.h"

namespace epsweep {

struct VirtualSettings {
  std::optional<int> most_shards;  // of a point; absent: all
  int iterations = 1;              // most of a shard; fewer where the point has fewer
  double phase_limit_s = 600;
};

// What one point's shards took, or why none was timed.
struct VirtualPoint {
  std::string refusal;                  // what cannot compute it; empty for nothing
  std::string missing_memory;           // of the first shard that does not fit; empty if all do
  std::optional<VirtualShards> shards;  // on rank 0, unless one of those says why not
  Json facts = nullptr;                 // of the record; on rank 0
  std::optional<double> foreign_load;   // of the round in which others used most; on rank 0
  int stop_signal = 0;                  // agreed by all ranks
  bool can_run() const { return refusal.empty() && missing_memory.empty() && stop_signal == 0; }
};

class VirtualRanks {
 public:
  VirtualRanks(const Comm& world, const HostMap& hosts, RankBackend backend,
               const VirtualSettings& settings);

  // On rank 0, which knows what point is next; the others follow() until it says that they may go.
  VirtualPoint measure(const SweepPoint& point);
  void dismiss();
  void follow(const Plan& plan);

  BackendInfo describe() const { return backend_->describe(); }
  const std::vector<std::string>& device_ids() const { return device_ids_; }
  int num_present() const { return world_.size(); }
  LoadFacts load() const;
  Json provenance(const std::vector<std::string>& argv) const;

 private:
  VirtualPoint measure_on_all(const SweepPoint& point);
  VirtualPoint measure_shards(const SweepPoint& point);
  std::string refusal_of(const RankWork& work) const;
  std::string missing_of(const RankWork& work) const;
  void prepare_weights_of(const RankWork& work);
  struct Timed {
    std::vector<double> seconds;  // [iterations][routings][stages]
    LoadSample load;
  };
  int agreed_signal() const;
  Timed time(const RankWork& work);
  void gather_load(const LoadSample& own, VirtualPoint& result) const;
  void measure_round(const SweepPoint& point, const std::vector<int>& ranks, std::size_t round,
                     VirtualPoint& result, std::vector<MeasuredShard>& measured);
  std::int64_t told(std::int64_t index) const;

  const Comm& world_;
  const HostMap& hosts_;
  const VirtualSettings settings_;
  std::unique_ptr<Backend> backend_;
  std::vector<std::string> device_ids_;
  std::optional<ExpertWeights> weights_;
  TraceCache traces_;
  Watchdog watchdog_;
};

// What every rank's experts get in every routing of the point.
ShardLoads shard_loads(const SweepPoint& point, TraceCache& traces);

// The shard that a present rank takes the place of in a round, [rounds][present]: each of `shards`
// once, in order. In the last round ranks without one take another that was measured before, so
// that a host is as busy as in the others; those times are dropped. Positions in `shards`.
struct RoundPlace {
  std::size_t shard = 0;
  bool counts = true;
};
RoundPlace place_in_round(std::size_t round, std::size_t present_rank, std::size_t num_present,
                          std::size_t num_shards);

}  // namespace epsweep
