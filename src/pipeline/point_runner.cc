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

WorkCounters counters_since(const WorkCounters& before, WorkCounters after) {
  const auto subtract = [](const std::optional<std::int64_t>& earlier,
                           std::optional<std::int64_t>& later) {
    later = earlier && later ? std::optional(*later - *earlier) : std::nullopt;
  };
  subtract(before.cycles, after.cycles);
  subtract(before.instructions, after.instructions);
  subtract(before.cache_misses, after.cache_misses);
  return after;
}

class PointRunner {
 public:
  PointRunner(const RankWork& work, Backend& backend, Transport& transport, ExpertWeights& weights,
              const RunnerHooks& hooks)
      : work_(work),
        hooks_(hooks),
        backend_(backend),
        transport_(transport),
        pipeline_(work, backend, transport, weights),
        oracle_(work),
        aligned_(context(transport, weights)),
        chained_(context(transport, weights)) {}

  RankOutcome run() {
    warm_kernels();
    outcome_.check_before = check("check before timing");
    if (hooks_.all_max(outcome_.check_before.passed() ? 0 : 1) != 0) return outcome_;
    transport_.end_rehearsal();
    if (work_.point.launch == Launch::graph) capture();
    warm_up();
    if (outcome_.stop_signal == 0) measure();
    if (outcome_.stop_signal != 0) return outcome_;
    outcome_.check_after = check("check after timing");
    outcome_.measured = true;
    return outcome_;
  }

 private:
  PassContext context(Transport& transport, ExpertWeights& weights) {
    return {.work = work_,
            .hooks = hooks_,
            .backend = backend_,
            .transport = transport,
            .weights = weights,
            .pipeline = pipeline_};
  }

  void warm_kernels() {
    const Stopwatch watch(outcome_.seconds.warm_kernels);
    pipeline_.warm_kernels();
  }

  // Of both passes, as a rank's first exchange with every other one and every launch's first time
  // are slow.
  void warm_up() {
    hooks_.enter_phase("warm-up");
    const Stopwatch watch(outcome_.seconds.warmup);
    for (int i = 0; i < work_.point.warmup && outcome_.stop_signal == 0; ++i) {
      outcome_.stop_signal = aligned_.warm_up(i);
      if (outcome_.stop_signal == 0) outcome_.stop_signal = chained_.warm_up(i);
    }
  }

  // All ranks at the same place: what is captured includes their exchanges. The check before ran
  // every layer, so nothing is left to be allocated.
  void capture() {
    hooks_.enter_phase("capturing the layers");
    const Stopwatch watch(outcome_.seconds.warmup);
    for (int routing = 0; routing < work_.point.num_routings(); ++routing) {
      pipeline_.capture_layer(routing);
    }
  }

  // Every layer in every step on poisoned buffers, each checked before the next one overwrites the
  // output.
  OracleResult check(const std::string& phase) {
    const Stopwatch watch(outcome_.seconds.check);
    OracleResult result;
    for (int routing = 0; routing < work_.point.num_routings(); ++routing) {
      hooks_.enter_phase(phase);
      pipeline_.poison();
      pipeline_.run_layer(routing);
      result.merge(check_layer(routing));
    }
    return result;
  }

  // A check that cannot finish is not a layer that is wrong: the two are told apart.
  OracleResult check_layer(int routing) {
    try {
      hooks_.before_oracle();
      OracleResult result = oracle_.check(routing, pipeline_.output());
      if (!pipeline_.counts_match_plan(routing)) {
        result.problem =
            fmt::format("layer {}: the exchanged counts or uses are not the planned ones",
                        work_.point.layer_of(routing));
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
    outcome_.condition_before = backend_.condition();
    const WorkCounters counted = backend_.counters();
    outcome_.aligned = aligned_.measure();
    outcome_.stop_signal = outcome_.aligned.facts.stop_signal;
    if (outcome_.stop_signal == 0) {
      outcome_.chained = chained_.measure();
      outcome_.stop_signal = outcome_.chained.facts.stop_signal;
    }
    outcome_.counters = counters_since(counted, backend_.counters());
    outcome_.condition_after = backend_.condition();
    outcome_.load.wall_s = monotonic_s() - begin_s;
    outcome_.load.own_cpu_s = process_cpu_s() - cpu_s;
    if (const auto now_s = host_busy_cpu_s(); now_s && busy_s) {
      outcome_.load.host_busy_s = *now_s - *busy_s;
    }
    outcome_.seconds.flush = outcome_.aligned.facts.flush_s + outcome_.chained.facts.flush_s;
    outcome_.seconds.measured = outcome_.load.wall_s - outcome_.seconds.flush;
    for (int routing = 0; routing < work_.point.num_routings(); ++routing) {
      outcome_.gemm_work.push_back(pipeline_.gemm_work(routing));
    }
  }

  const RankWork& work_;
  const RunnerHooks& hooks_;
  Backend& backend_;
  Transport& transport_;
  LayerPipeline pipeline_;
  Oracle oracle_;
  AlignedPass aligned_;
  ChainedPass chained_;
  RankOutcome outcome_;
};

}  // namespace

RankOutcome run_point(const RankWork& work, Backend& backend, Transport& transport,
                      ExpertWeights& weights, const RunnerHooks& hooks) {
  return PointRunner(work, backend, transport, weights, hooks).run();
}

}  // namespace epsweep
