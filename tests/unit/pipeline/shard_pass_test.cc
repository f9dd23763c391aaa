// A rank of a wide EP size by itself: what its experts get, and what is timed.
#include "pipeline/shard_pass.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/error.h"
#include "pipeline/absent_peers.h"
#include "support/layer_fixture.h"

namespace epsweep {
namespace {

using Rows = std::vector<std::int64_t>;

// Notes the rows that experts get; results are those of the kernel behind it.
class NotingGemm final : public GroupedGemm {
 public:
  NotingGemm(std::unique_ptr<GroupedGemm> kernel, std::vector<Rows>& runs, int& flushes)
      : kernel_(std::move(kernel)), runs_(runs), flushes_(flushes) {}
  void prepare(const WeightSource& weights) override { kernel_->prepare(weights); }
  void warm(std::span<const std::int64_t> rows) override { kernel_->warm(rows); }
  GemmWork run(Lane& lane, const Buffer& x, Buffer& y,
               std::span<const std::int64_t> rows) override {
    runs_.emplace_back(rows.begin(), rows.end());
    return kernel_->run(lane, x, y, rows);
  }
  void flush_weights() override { ++flushes_; }
  std::int64_t weight_bytes() const override { return kernel_->weight_bytes(); }

 private:
  std::unique_ptr<GroupedGemm> kernel_;
  std::vector<Rows>& runs_;
  int& flushes_;
};

struct ShardRun {
  std::vector<double> seconds;
  std::vector<Rows> gemm_rows;  // of every product, in the order they ran
  int flushes = 0, meetings = 0, asked = 0;
};

// `stop_at`: which time it is asked that ranks agree to stop; -1 never.
ShardRun time(const SweepPoint& point, int ep_rank, const ShardIterations& iterations,
              int stop_at = -1) {
  ShardRun run;
  const RankWork work = plan_rank_work(point, ep_rank);
  const auto backend = make_cpu_backend({.num_threads = 1, .memory_bytes = 0, .local_rank = 0});
  const GemmMaker make = catalog_gemm(point);
  ExpertWeights weights = prepare_weights(work, *backend, [&](const GemmShape& shape) {
    return std::make_unique<NotingGemm>(make(shape), run.gemm_rows, run.flushes);
  });
  run.seconds = time_shard(work, *backend, weights, iterations,
                           {.align = [&run] { ++run.meetings; },
                            .stop = [&run, stop_at] { return run.asked++ == stop_at; },
                            .enter_phase = [](const std::string&) {}});
  return run;
}

SweepPoint wide_point(ExchangeUnit unit) {
  SweepPoint point = layer_point(4, 30);
  point.exchange_unit = unit;
  point.layers = 2;
  point.vary_routing = 2;
  return point;
}

// Counted from the trace itself: experts 3 * r to 3 * r + 2 are those of rank r.
Rows rows_of_trace(const SweepPoint& point, int ep_rank, int routing) {
  Rows rows(3);
  const Trace trace = draw_trace(at_step_of(point, routing), point.layer_of(routing));
  for (const std::int32_t expert : trace.experts) {
    if (expert / 3 == ep_rank) ++rows[static_cast<std::size_t>(expert % 3)];
  }
  return rows;
}

TEST(ShardPass, ExpertsGetTheRowsOfTheTraceInEveryLayerAndStep) {
  for (const ExchangeUnit unit : {ExchangeUnit::assignment, ExchangeUnit::rank}) {
    const SweepPoint point = wide_point(unit);
    for (int ep_rank = 0; ep_rank < 4; ++ep_rank) {
      const ShardRun run = time(point, ep_rank, {.warmup = 1, .timed = 2});
      ASSERT_EQ(run.gemm_rows.size(), 3U * 4 * 2);  // iterations, routings, products
      for (std::size_t i = 0; i < run.gemm_rows.size(); ++i) {
        const int routing = static_cast<int>(i / 2 % 4);
        EXPECT_EQ(run.gemm_rows[i], rows_of_trace(point, ep_rank, routing));
      }
    }
  }
}

TEST(ShardPass, TimesEveryStageOfEveryRouting) {
  const ShardRun run = time(wide_point(ExchangeUnit::assignment), 1, {.warmup = 1, .timed = 3});
  ASSERT_EQ(run.seconds.size(), 3U * 4 * kNumStages);
  for (const double seconds : run.seconds) EXPECT_GT(seconds, 0);
  // Before each stage but expert_ffn and unpermute, in 4 iterations of 4 layers.
  EXPECT_EQ(run.meetings, 4 * 4 * (kNumStages - 2));
}

// Two layers with two matrices each, before each of two steps of 3 iterations.
TEST(ShardPass, WeightsLeaveTheCachesBeforeEveryStep) {
  SweepPoint point = wide_point(ExchangeUnit::assignment);
  EXPECT_EQ(time(point, 0, {.warmup = 1, .timed = 2}).flushes, 3 * 2 * 4);
  point.weight_cache = WeightCache::warm;
  EXPECT_EQ(time(point, 0, {.warmup = 1, .timed = 2}).flushes, 0);
}

// Rank 3 owns no tokens, rank 2 gets no rows where no token picks its experts.
TEST(ShardPass, RanksWithoutTokensHaveRowsAllTheSame) {
  SweepPoint point = wide_point(ExchangeUnit::rank);
  point.concurrency = {
      .mode = ConcurrencyMode::listed, .tokens = 0, .tokens_per_rank = {9, 21, 0, 0}};
  const ShardRun run = time(point, 3, {.warmup = 1, .timed = 1});
  EXPECT_EQ(run.gemm_rows.front(), rows_of_trace(point, 3, 0));
  point.concurrency.tokens_per_rank = {1, 0, 0, 0};
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(time(point, rank, {.warmup = 1, .timed = 1}).gemm_rows.front(),
              rows_of_trace(point, rank, 0));
  }
}

// The warm-up and two of three iterations ran: three times 4 routings with two products each.
TEST(ShardPass, EndsWhereRanksAgreeToStop) {
  const ShardRun run = time(wide_point(ExchangeUnit::assignment), 1, {.warmup = 1, .timed = 3}, 3);
  EXPECT_TRUE(run.seconds.empty());
  EXPECT_EQ(run.gemm_rows.size(), 3U * 4 * 2);
  EXPECT_EQ(
      time(wide_point(ExchangeUnit::assignment), 1, {.warmup = 1, .timed = 3}, 0).gemm_rows.size(),
      0U);
}

// What arrives are values, not zeros or NaN, so that products cost what they do with real rows.
TEST(AbsentPeers, RowsThatArriveAreValues) {
  SweepPoint point = layer_point(4, 30);
  point.dtype = DType::fp32;
  const RankWork work = plan_rank_work(point, 2);
  const auto backend = make_cpu_backend({.num_threads = 1, .memory_bytes = 0, .local_rank = 0});
  AbsentPeers peers(work, *backend);
  const auto lane = backend->make_lane();
  const std::int64_t rows = work.max_recv_rows(), cols = point.model.expert_io_dim;
  Buffer recv = backend->make_buffer(rows * cols * 4);
  backend->poison(recv);
  const Buffer nothing;
  peers.begin_layer(0);
  peers.all_to_all_v(*lane, nothing, recv,
                     {.send = work.dispatch[0].send_rows,
                      .recv = work.dispatch[0].recv_rows,
                      .row_bytes = cols * 4});
  for (const float value : recv.as<float>()) {
    EXPECT_TRUE(std::isfinite(value));
    EXPECT_NE(value, 0);
  }
}

TEST(AbsentPeers, AreNoneOfMessagesOfFixedCapacity) {
  RankWork work = plan_rank_work(layer_point(4, 30), 2);
  work.capacity_rows = 8;
  const auto backend = make_cpu_backend({.num_threads = 1, .memory_bytes = 0, .local_rank = 0});
  EXPECT_THROW(AbsentPeers(work, *backend), RunError);
}

}  // namespace
}  // namespace epsweep
