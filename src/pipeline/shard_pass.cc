#include "pipeline/shard_pass.h"

#include <fmt/format.h>

#include "base/error.h"
#include "pipeline/absent_peers.h"
#include "pipeline/layer_pipeline.h"

namespace epsweep {
namespace {

constexpr int kMarksOfStage = 2;

class ShardPass {
 public:
  ShardPass(const RankWork& work, Backend& backend, ExpertWeights& weights, const ShardHooks& hooks)
      : work_(work),
        weights_(weights),
        hooks_(hooks),
        peers_(work, backend),
        pipeline_(work, backend, peers_, weights),
        timeline_(backend.make_timeline(work.point.num_routings() * kNumStages * kMarksOfStage)) {}

  std::vector<double> run(const ShardIterations& iterations) {
    pipeline_.warm_kernels();
    hooks_.enter_phase("warming up a shard");
    for (int i = 0; i < iterations.warmup; ++i) {
      if (hooks_.stop()) return {};
      run_all();
    }
    hooks_.enter_phase("timing a shard");
    std::vector<double> seconds;
    for (int i = 0; i < iterations.timed; ++i) {
      if (hooks_.stop()) return {};
      run_all();
      for (MarkId mark = 0; mark < work_.point.num_routings() * kNumStages * kMarksOfStage;
           mark += kMarksOfStage) {
        seconds.push_back(timeline_->at(mark + 1) - timeline_->at(mark));
      }
    }
    return seconds;
  }

 private:
  void run_all() {
    Lane& lane = pipeline_.lane();
    lane.synchronize();
    timeline_->start(lane);
    MarkId mark = 0;
    for (int routing = 0; routing < work_.point.num_routings(); ++routing) {
      if (work_.point.layer_of(routing) == 0) begin_step();
      peers_.begin_layer(routing);
      for (int s = 0; s < kNumStages; ++s) run_stage(routing, static_cast<Stage>(s), mark);
      lane.synchronize();
      EPS_EXPECT(
          pipeline_.counts_match_plan(routing),
          fmt::format("the shard of EP rank {} got other rows than the trace says", work_.ep_rank));
    }
  }

  void begin_step() {
    if (work_.point.weight_cache == WeightCache::flush) weights_.flush_from_caches();
  }

  // Ranks meet before what comes first of an exchange and the stage behind it.
  void run_stage(int routing, Stage stage, MarkId& mark) {
    const bool follows_copy = stage == Stage::expert_ffn || stage == Stage::unpermute;
    if (!follows_copy) {
      pipeline_.lane().synchronize();
      hooks_.align();
    }
    timeline_->mark(pipeline_.lane(), mark++);
    pipeline_.run_stage(routing, stage);
    timeline_->mark(pipeline_.lane(), mark++);
  }

  const RankWork& work_;
  ExpertWeights& weights_;
  const ShardHooks& hooks_;
  AbsentPeers peers_;
  LayerPipeline pipeline_;
  std::unique_ptr<Timeline> timeline_;
};

}  // namespace

std::vector<double> time_shard(const RankWork& work, Backend& backend, ExpertWeights& weights,
                               const ShardIterations& iterations, const ShardHooks& hooks) {
  return ShardPass(work, backend, weights, hooks).run(iterations);
}

}  // namespace epsweep
