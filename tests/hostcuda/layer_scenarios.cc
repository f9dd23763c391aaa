#include "hostcuda/layer_scenarios.h"

#include <algorithm>
#include <cmath>

#include "hostcuda/layer_run.h"
#include "hostcuda/left_out.h"
#include "hostcuda/stream_queue.h"
#include "pipeline/point_runner.h"
#include "workload/payload.h"

namespace epsweep {
namespace {

SweepPoint scenario_point(const std::string& transport, const std::string& gemm, ExchangeUnit unit,
                          Launch launch) {
  const int ranks = mpi_world().size();
  SweepPoint point = layer_point(ranks, 5 + 3 * ranks);
  point.routing = {.distribution = "zipf", .params = {{"zipf_alpha", 0.4}}, .file = {}};
  point.model.router = {.scoring = Scoring::sigmoid, .renormalize = true, .selection_bias = true};
  point.placement = ranks > 1 ? "eplb" : "contiguous";
  point.redundant_slots = ranks > 1 ? ranks : 0;
  point.transport = transport;
  point.grouped_gemm = gemm;
  point.exchange_unit = unit;
  point.launch = launch;
  point.layers = 2;
  point.warmup = 1;
  return point;
}

std::string label(const SweepPoint& point) {
  return point.transport + " " + point.grouped_gemm + " " + to_string(point.exchange_unit) +
         (point.launch == Launch::graph ? " graph" : "");
}

constexpr int kMarksOfLayer = 2 * kNumStages;

// One rank's engine for a point, from the weights to the transport.
class Engine {
 public:
  explicit Engine(const SweepPoint& point)
      : group_(group_of(point.ep_size)),
        work_(plan_rank_work(point, group_.ep_rank())),
        backend_(BackendCatalog::instance().at("cuda").make({.num_threads = 1})),
        weights_(prepare_weights(work_, *backend_, catalog_gemm(point))),
        transport_(point.transport, group_),
        pipeline_(work_, *backend_, *transport_, weights_),
        oracle_(work_),
        timeline_(backend_->make_timeline(point.layers * kMarksOfLayer)) {
    pipeline_.warm_kernels();
  }

  LayerPipeline& pipeline() { return pipeline_; }
  void run_layer(int layer) { pipeline_.run_layer(layer); }

  // Each of three readings comes first in its turn, when it must wait for the layer by itself.
  std::string problem_of_reading(int layer, const std::vector<float>& output,
                                 const std::vector<std::int32_t>& own_choice,
                                 unsigned long long first) {
    std::string problem;
    for (unsigned long long i = first; i < first + 3; ++i) {
      if (i % 3 == 0 && !is_expected(layer, output)) problem = "another output";
      if (i % 3 == 1 && pipeline_.own_choice() != own_choice) problem = "another choice of experts";
      if (i % 3 == 2 && !pipeline_.counts_match_plan(layer)) problem = "counts not as planned";
    }
    return problem;
  }

  // Kernels that `auto` may choose between by times, which have no meaning here, add in other
  // orders.
  bool is_expected(int layer, const std::vector<float>& output) {
    const std::vector<float> got = pipeline_.output();
    if (work_.point.grouped_gemm != "auto") return got == output;
    return oracle_.check(layer, got).passed();
  }

  // What the backend fills may be used on any lane.
  std::string problem_of_fill() {
    constexpr std::int64_t kCount = 40;
    const PayloadStream stream = token_matrix(work_.point.seed, kCount).stream();
    std::vector<float> want(kCount), got(kCount);
    fill_payload(stream, 0, std::span(want));
    const std::int32_t first = 0;
    Buffer filled = backend_->make_buffer(4 * kCount), out = backend_->make_buffer(4 * kCount),
           source = backend_->make_buffer(4);
    backend_->poison(filled);
    backend_->copy_from_host(&first, source, 4);
    backend_->fill(filled, stream, 0, kCount, DType::fp32);
    const auto lane = backend_->make_lane();
    backend_->token_ops().gather_rows(*lane, filled, {.buffer = &source, .count = 1}, 4 * kCount,
                                      out);
    lane->synchronize();
    backend_->copy_to_host(out, got.data(), out.bytes());
    return got == want ? "" : "a fill that was not waited for";
  }

  // Two layers without anybody looking in between, as in timed iterations.
  std::string problem_of_times() {
    std::string problem;
    weights_.flush_from_caches();
    if (hostcuda::num_queued() != 0) problem = "a flush of caches that was not waited for";
    timeline_->start(pipeline_.lane());
    if (hostcuda::num_queued() != 0) problem = "times that start on a lane at work";
    MarkId marks = 0;
    for (int layer = 0; layer < work_.point.layers; ++layer) {
      for (int stage = 0; stage < kNumStages; ++stage) {
        timeline_->mark(pipeline_.lane(), marks++);
        pipeline_.run_stage(layer, static_cast<Stage>(stage));
        timeline_->mark(pipeline_.lane(), marks++);
      }
    }
    pipeline_.wait();
    for (MarkId mark = 1; mark < marks; ++mark) {
      if (timeline_->at(mark) < timeline_->at(mark - 1)) problem = "times that run backwards";
    }
    return problem;
  }

  std::string problem_of_runner() {
    std::string problem;
    const RunnerHooks hooks{
        .all_max = [this](int value) { return static_cast<int>(group_.comm().all_max(value)); },
        .all_max_s = [this](std::span<double> values) { group_.comm().all_max(values); },
        // Ranks meet before a stage with nothing under way, or their devices would not meet.
        .align =
            [this, &problem] {
              if (hostcuda::num_queued() != 0) problem = "ranks that meet while a device works";
              group_.comm().barrier();
            },
        // Asked before every iteration, which starts with nothing under way.
        .stop_wish =
            [&problem] {
              if (hostcuda::num_queued() != 0) problem = "an iteration that nobody waited for";
              return 0;
            },
        .enter_phase = [](const std::string&) {},
        .before_oracle = [] {},
        .delay = {}};
    const RankOutcome outcome = run_point(work_, *backend_, *transport_, weights_, hooks);
    for (const OracleResult& check : {outcome.check_before, outcome.check_after}) {
      if (!check.passed()) problem = check.problem.value_or(check.unfinished.value_or(""));
    }
    return problem;
  }

  void close() {
    transport_.close();
    group_.close();
  }

 private:
  EpGroup group_;
  RankWork work_;
  std::unique_ptr<Backend> backend_;
  ExpertWeights weights_;
  OpenTransport transport_;
  LayerPipeline pipeline_;
  Oracle oracle_;
  std::unique_ptr<Timeline> timeline_;
};

bool all_nan(const std::vector<float>& values) {
  return std::ranges::all_of(values, [](float value) { return std::isnan(value); });
}

}  // namespace

Scenarios::Scenarios()
    : backend_(BackendCatalog::instance().at("cuda").make({.num_threads = 1})),
      transports_(names_for<TransportCatalog>("cuda")) {
  for (const std::string& gemm : names_for<GroupedGemmCatalog>("cuda")) {
    if (!points(transports_.front(), gemm).empty()) gemms_.push_back(gemm);
  }
  // Last: it measures all others, which takes long, and frees memory, which waits for everything.
  std::ranges::stable_partition(gemms_, [](const std::string& gemm) { return gemm != "auto"; });
}

std::vector<SweepPoint> Scenarios::points(const std::string& transport,
                                          const std::string& gemm) const {
  std::vector<SweepPoint> points;
  for (const ExchangeUnit unit : {ExchangeUnit::assignment, ExchangeUnit::rank}) {
    for (const Launch launch : {Launch::direct, Launch::graph}) {
      const SweepPoint point = scenario_point(transport, gemm, unit, launch);
      if (can_run(point, *backend_, mpi_world().rank())) points.push_back(point);
    }
  }
  return points;
}

const Scenarios::Known& Scenarios::known(const SweepPoint& point) {
  Known& known = known_[label(point)];
  if (!known.output.empty()) return known;
  const hostcuda::NothingLeftOut all_waits;
  Engine engine(point);
  for (int layer = 0; layer < point.layers; ++layer) {
    engine.pipeline().poison();
    engine.run_layer(layer);
    known.output.push_back(engine.pipeline().output());
    known.own_choice.push_back(engine.pipeline().own_choice());
  }
  engine.close();
  return known;
}

std::string Scenarios::problem_of(const SweepPoint& point, unsigned long long seed) {
  const Known& expected = known(point);
  hostcuda::set_seed(kSeeds * static_cast<unsigned long long>(mpi_world().rank()) + seed);
  Engine engine(point);
  std::string problem;
  for (int layer = 0; layer < point.layers; ++layer) {
    const auto at = static_cast<std::size_t>(layer);
    engine.pipeline().poison();
    engine.run_layer(layer);
    const std::string read =
        engine.problem_of_reading(layer, expected.output[at], expected.own_choice[at], seed % 3);
    if (!read.empty()) problem = read;
  }
  engine.run_layer(0);
  engine.pipeline().poison();
  if (!all_nan(engine.pipeline().output())) problem = "poison that the layer before wrote over";
  if (const std::string fill = engine.problem_of_fill(); !fill.empty()) problem = fill;
  if (const std::string times = engine.problem_of_times(); !times.empty()) problem = times;
  if (!engine.is_expected(point.layers - 1, expected.output.back())) {
    problem = "another output at the end";
  }
  if (seed % 4 == 0 || point.launch == Launch::graph) {
    if (const std::string check = engine.problem_of_runner(); !check.empty()) problem = check;
  }
  engine.close();
  return problem;
}

std::string Scenarios::problem_under(unsigned long long seed, std::size_t turn, Extent extent) {
  const std::string& gemm = gemms_[turn % gemms_.size()];
  const std::string& transport = transports_[(turn + turn / gemms_.size()) % transports_.size()];
  std::vector<SweepPoint> all = points(transport, gemm);
  if (extent == Extent::one_point) all = {all[turn / gemms_.size() % all.size()]};
  for (const SweepPoint& point : all) {
    const std::string problem = problem_of(point, seed);
    if (!problem.empty()) return label(point) + ": " + problem;
  }
  return "";
}

}  // namespace epsweep
