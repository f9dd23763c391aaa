// The two ways a point is timed: ranks start every stage together, or layers follow one another.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "device/backend.h"
#include "device/transport.h"
#include "pipeline/expert_weights.h"
#include "pipeline/layer_pipeline.h"
#include "pipeline/rank_work.h"
#include "pipeline/runner_hooks.h"
#include "pipeline/stop_rule.h"

namespace epsweep {

// Of one (iteration, layer, stage).
struct StageTimes {
  double begin_s = 0, end_s = 0;  // host's monotonic clock
  double cpu_s = 0;
};

// Of one layer of a chain.
struct LayerTimes {
  double begin_s = 0, end_s = 0;  // host's monotonic clock
};

// What disturbed an iteration on this rank.
struct Disturbance {
  std::int64_t involuntary_switches = 0;  // other programs took its cores so often
  bool clock_limited = false;             // the device said afterwards that its clock was held down
  bool any() const { return involuntary_switches > 0 || clock_limited; }
};

// How the iterations of a pass went and ended.
struct PassFacts {
  int num_iterations = 0;
  std::optional<StopReason> stop;   // absent where a signal ended it
  std::optional<double> precision;  // relative_precision() of the slowest ranks' whole iterations
  std::vector<Disturbance> disturbed;  // [iterations]
  int stop_signal = 0;                 // agreed by all ranks
  double mark_bound_s = 0;  // times of marks may be off so much on the host's clock, not between
                            // each other
  double flush_s = 0;
};

// What a pass works with; it outlives the pass.
struct PassContext {
  const RankWork& work;
  const RunnerHooks& hooks;
  Backend& backend;
  Transport& transport;
  ExpertWeights& weights;
  LayerPipeline& pipeline;
};

// Delays are injected in timed iterations only.
enum class IterationKind { timed, warm_up };
struct Iteration {
  int index = 0;
  IterationKind kind = IterationKind::timed;
};

struct AlignedTimes {
  PassFacts facts;
  std::vector<StageTimes> times;  // [iterations][layers][stages]
};
// Before each stage all ranks wait for each other, on the host and then on the device, so a stage
// begins on all of them within the alignment's own skew. Marks lie inside: alignment is not timed.
class AlignedPass {
 public:
  explicit AlignedPass(const PassContext& context);
  // One iteration whose times nobody keeps, or the signal at which all ranks agreed to stop.
  int warm_up(int iteration);
  // Collective over the ranks of the point, as are all of a pass.
  AlignedTimes measure();

 private:
  // Returns the timeline's bound.
  double run(Iteration iteration);

  PassContext context_;
  std::unique_ptr<Timeline> timeline_;
};

struct ChainedTimes {
  PassFacts facts;
  int chain_layers = 0;
  std::vector<LayerTimes> times;  // [chains][chain_layers]
};
// Chains of layers (base/chain_shape.h): ranks start a chain together and then wait for each
// other's rows only; two marks around each layer, nothing else in between.
class ChainedPass {
 public:
  explicit ChainedPass(const PassContext& context);
  int warm_up(int iteration);
  ChainedTimes measure();

 private:
  double run(Iteration iteration);
  void run_layer(Iteration iteration, int routing);

  PassContext context_;
  int chain_layers_;
  std::unique_ptr<Timeline> timeline_;
};

}  // namespace epsweep
