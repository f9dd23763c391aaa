#include "pipeline/point_runner.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/host_probe.h"

namespace epsweep {
namespace {

// Adds the seconds until it goes out of scope.
class Stopwatch {
 public:
  explicit Stopwatch(double& total) : total_(total), begin_(monotonic_s()) {}
  ~Stopwatch() { total_ += monotonic_s() - begin_; }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& total_;
  double begin_;
};

class PointRunner {
 public:
  PointRunner(const RankWork& work, Backend& backend, Transport& transport, ExpertWeights& weights,
              const RunnerHooks& hooks)
      : work_(work),
        hooks_(hooks),
        backend_(backend),
        weights_(weights),
        pipeline_(work, backend, transport, weights),
        oracle_(work),
        timeline_(backend.make_timeline(work.point.layers * LayerPipeline::marks_per_layer())) {}

  RankOutcome run() {
    warm_kernels();
    outcome_.check_before = check("check before timing");
    if (hooks_.all_max(outcome_.check_before.passed() ? 0 : 1) != 0) return outcome_;
    warm_up("warm-up");
    if (work_.point.launch == Launch::graph && outcome_.stop_signal == 0) {
      capture();
      warm_up("warm-up of the captured layers");
    }
    measure();
    if (outcome_.stop_signal != 0) return outcome_;
    outcome_.check_after = check("check after timing");
    outcome_.measured = true;
    return outcome_;
  }

 private:
  void warm_kernels() {
    const Stopwatch watch(outcome_.seconds.warm_kernels);
    pipeline_.warm_kernels();
  }

  void warm_up(const std::string& phase) {
    hooks_.enter_phase(phase);
    for (int i = 0; i < work_.point.warmup && outcome_.stop_signal == 0; ++i) {
      const Stopwatch watch(outcome_.seconds.warmup);
      iterate();
    }
  }

  // All ranks at the same place: what is captured includes their exchanges.
  void capture() {
    hooks_.enter_phase("capturing the layers");
    const Stopwatch watch(outcome_.seconds.warmup);
    for (int layer = 0; layer < work_.point.layers; ++layer) {
      pipeline_.capture_layer(layer, *timeline_, layer * LayerPipeline::marks_per_layer());
    }
  }

  // Every layer on poisoned buffers, each checked before the next one overwrites the output.
  OracleResult check(const std::string& phase) {
    const Stopwatch watch(outcome_.seconds.check);
    OracleResult result;
    for (int layer = 0; layer < work_.point.layers; ++layer) {
      hooks_.enter_phase(phase);
      pipeline_.poison();
      pipeline_.run_layer(layer, *timeline_, 0);
      result.merge(check_layer(layer));
    }
    return result;
  }

  // A check that cannot finish is not a layer that is wrong: the two are told apart.
  OracleResult check_layer(int layer) {
    try {
      hooks_.before_oracle();
      OracleResult result = oracle_.check(layer, pipeline_.output());
      if (!pipeline_.counts_match_plan(layer)) {
        result.problem =
            fmt::format("layer {}: the exchanged counts or uses are not the planned ones", layer);
      }
      return result;
    } catch (const std::exception& error) {
      OracleResult result;
      result.unfinished = error.what();
      return result;
    }
  }

  void measure() {
    const double begin_s = monotonic_s(), cpu_s = process_cpu_s();
    const std::optional<double> busy_s = host_busy_cpu_s();
    for (int i = 0; i < work_.point.iterations && outcome_.stop_signal == 0; ++i) {
      hooks_.enter_phase("timed iterations");
      if (iterate()) keep_times();
    }
    outcome_.condition = backend_.condition();
    outcome_.load.wall_s = monotonic_s() - begin_s;
    outcome_.load.own_cpu_s = process_cpu_s() - cpu_s;
    if (const auto now_s = host_busy_cpu_s(); now_s && busy_s) {
      outcome_.load.host_busy_s = *now_s - *busy_s;
    }
  }

  // False if all ranks agreed to stop instead.
  bool iterate() {
    if (work_.point.weight_cache == WeightCache::flush) {
      const Stopwatch watch(outcome_.seconds.flush);
      weights_.flush_from_caches();
    }
    outcome_.stop_signal = hooks_.all_max(hooks_.stop_wish());
    if (outcome_.stop_signal != 0) return false;
    outcome_.gemm_work.clear();
    timeline_->start();
    for (int layer = 0; layer < work_.point.layers; ++layer) {
      outcome_.gemm_work.push_back(
          pipeline_.run_layer(layer, *timeline_, layer * LayerPipeline::marks_per_layer()));
    }
    pipeline_.wait();
    return true;
  }

  void keep_times() {
    for (int layer = 0; layer < work_.point.layers; ++layer) {
      for (int stage = 0; stage < kNumStages; ++stage) {
        const MarkId begin = layer * LayerPipeline::marks_per_layer() + 2 * stage;
        outcome_.times.push_back(
            {.begin_s = timeline_->at(begin),
             .end_s = timeline_->at(begin + 1),
             .cpu_s = timeline_->cpu_at(begin + 1) - timeline_->cpu_at(begin)});
      }
    }
    const MarkId last = work_.point.layers * LayerPipeline::marks_per_layer() - 1;
    outcome_.seconds.measured += timeline_->at(last) - timeline_->at(0);
  }

  const RankWork& work_;
  const RunnerHooks& hooks_;
  Backend& backend_;
  ExpertWeights& weights_;
  LayerPipeline pipeline_;
  Oracle oracle_;
  std::unique_ptr<Timeline> timeline_;
  RankOutcome outcome_;
};

}  // namespace

RankOutcome run_point(const RankWork& work, Backend& backend, Transport& transport,
                      ExpertWeights& weights, const RunnerHooks& hooks) {
  return PointRunner(work, backend, transport, weights, hooks).run();
}

}  // namespace epsweep
