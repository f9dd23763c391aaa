#include "pipeline/timed_passes.h"

#include <algorithm>

#include "base/chain_shape.h"
#include "base/host_probe.h"

namespace epsweep {
namespace {

constexpr int kMarksOfStage = 2, kMarksOfLayer = 2;

void delay(const PassContext& context, Iteration iteration, Stage stage, DelayPlace place) {
  if (iteration.kind == IterationKind::warm_up || !context.hooks.delay) return;
  context.hooks.delay(iteration.index, stage, place);
}

int routing_of(const PassContext& context, Iteration iteration, int position) {
  const SweepPoint& point = context.work.point;
  return routing_at(point.layers, point.num_routings(), iteration.index, position);
}

// All ranks do this at the same place. False if they agreed to stop instead.
bool start_together(const PassContext& context, PassFacts& facts) {
  if (context.work.point.weight_cache == WeightCache::flush) {
    const double begin_s = monotonic_s();
    context.weights.flush_from_caches();
    facts.flush_s += monotonic_s() - begin_s;
  }
  facts.stop_signal = context.hooks.all_max(context.hooks.stop_wish());
  return facts.stop_signal == 0;
}

Disturbance disturbance_since(const PassContext& context, std::int64_t switches) {
  const std::optional<std::vector<std::string>> limits = context.backend.condition().clock_limits;
  return {.involuntary_switches = involuntary_switches() - switches,
          .clock_limited = limits.has_value() && !limits->empty()};
}

// Runs iterations until the rule ends them; run_once(iteration) returns its seconds on this rank.
template <typename RunOnce>
void run_iterations(const PassContext& context, const std::string& phase, PassFacts& facts,
                    const RunOnce& run_once) {
  const IterationPlan plan{.fewest = context.work.point.iterations,
                           .target = context.work.point.iteration_target};
  std::vector<double> slowest_s;
  const double begin_s = monotonic_s();
  while (!facts.stop.has_value()) {
    std::vector<double> batch;
    const int size = next_batch(plan, facts.num_iterations);
    for (int i = 0; i < size; ++i) {
      context.hooks.enter_phase(phase);
      if (!start_together(context, facts)) return;
      const std::int64_t switches = involuntary_switches();
      batch.push_back(run_once(facts.num_iterations++));
      facts.disturbed.push_back(disturbance_since(context, switches));
    }
    batch.push_back(monotonic_s() - begin_s);
    context.hooks.all_max_s(batch);
    const double elapsed_s = batch.back();
    slowest_s.insert(slowest_s.end(), batch.begin(), batch.end() - 1);
    facts.stop = stop_reason(plan, slowest_s, elapsed_s);
    facts.precision = relative_precision(slowest_s);
  }
}

}  // namespace

AlignedPass::AlignedPass(const PassContext& context)
    : context_(context),
      timeline_(
          context.backend.make_timeline(context.work.point.layers * kNumStages * kMarksOfStage)) {}

int AlignedPass::warm_up(int iteration) {
  PassFacts facts;
  if (start_together(context_, facts)) run({iteration, IterationKind::warm_up});
  return facts.stop_signal;
}

// A device that idles when a stage is enqueued would show how fast the host enqueues: it is kept
// busy by the transport's own alignment meanwhile.
double AlignedPass::run(Iteration iteration) {
  Lane& lane = context_.pipeline.lane();
  const double bound_s = timeline_->start(lane);
  MarkId mark = 0;
  for (int layer = 0; layer < context_.work.point.layers; ++layer) {
    for (int s = 0; s < kNumStages; ++s) {
      const auto stage = static_cast<Stage>(s);
      lane.synchronize();
      context_.hooks.align();
      context_.transport.align(lane);
      delay(context_, iteration, stage, DelayPlace::before);
      timeline_->mark(lane, mark++);
      delay(context_, iteration, stage, DelayPlace::inside);
      context_.pipeline.run_stage(routing_of(context_, iteration, layer), stage);
      timeline_->mark(lane, mark++);
    }
  }
  lane.synchronize();
  return bound_s;
}

AlignedTimes AlignedPass::measure() {
  AlignedTimes result;
  run_iterations(context_, "timed stages", result.facts, [&](int iteration) {
    result.facts.mark_bound_s = std::max(result.facts.mark_bound_s, run({.index = iteration}));
    double sum_s = 0;
    for (MarkId mark = 0; mark < context_.work.point.layers * kNumStages * kMarksOfStage;
         mark += kMarksOfStage) {
      result.times.push_back({.begin_s = timeline_->at(mark),
                              .end_s = timeline_->at(mark + 1),
                              .cpu_s = timeline_->cpu_at(mark + 1) - timeline_->cpu_at(mark)});
      sum_s += result.times.back().end_s - result.times.back().begin_s;
    }
    return sum_s;
  });
  return result;
}

ChainedPass::ChainedPass(const PassContext& context)
    : context_(context),
      chain_layers_(chain_layers_for(context.work.point.layers)),
      timeline_(context.backend.make_timeline(chain_layers_ * kMarksOfLayer)) {}

int ChainedPass::warm_up(int iteration) {
  PassFacts facts;
  if (start_together(context_, facts)) run({iteration, IterationKind::warm_up});
  return facts.stop_signal;
}

double ChainedPass::run(Iteration iteration) {
  Lane& lane = context_.pipeline.lane();
  const double bound_s = timeline_->start(lane);
  MarkId mark = 0;
  for (int position = 0; position < chain_layers_; ++position) {
    timeline_->mark(lane, mark++);
    run_layer(iteration, routing_of(context_, iteration, position));
    timeline_->mark(lane, mark++);
  }
  lane.synchronize();
  return bound_s;
}

void ChainedPass::run_layer(Iteration iteration, int routing) {
  if (!context_.hooks.delay) return context_.pipeline.run_layer(routing);
  for (int s = 0; s < kNumStages; ++s) {
    const auto stage = static_cast<Stage>(s);
    delay(context_, iteration, stage, DelayPlace::before);
    delay(context_, iteration, stage, DelayPlace::inside);
    context_.pipeline.run_stage(routing, stage);
  }
}

ChainedTimes ChainedPass::measure() {
  ChainedTimes result;
  result.chain_layers = chain_layers_;
  run_iterations(context_, "timed chains of layers", result.facts, [&](int iteration) {
    result.facts.mark_bound_s = std::max(result.facts.mark_bound_s, run({.index = iteration}));
    for (MarkId mark = 0; mark < chain_layers_ * kMarksOfLayer; mark += kMarksOfLayer) {
      result.times.push_back({.begin_s = timeline_->at(mark), .end_s = timeline_->at(mark + 1)});
    }
    return timeline_->at(chain_layers_ * kMarksOfLayer - 1) -
           timeline_->at(fill_layers_of(chain_layers_) * kMarksOfLayer);
  });
  return result;
}

}  // namespace epsweep
