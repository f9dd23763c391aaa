// The exchange replaced by a local copy: what comes again, and what is refused.
#include "pipeline/local_copy.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "pipeline/exchange_refusal.h"
#include "pipeline/point_runner.h"
#include "support/layer_fixture.h"

namespace epsweep {
namespace {

struct Calls {
  int counts = 0, rows = 0, aligned = 0, closed = 0;
  std::vector<int> layers;
};

// What arrives is 1 in the first exchange of all, 2 in the second, and so on.
class Numbered final : public Transport {
 public:
  explicit Numbered(Calls& calls) : calls_(calls) {}
  void exchange_counts(Lane& /*lane*/, const Buffer& /*send*/, Buffer& recv,
                       std::span<const int> /*slots_of_rank*/) override {
    ++calls_.counts;
    std::ranges::fill(recv.as<std::int64_t>(), ++exchange_);
  }
  void all_to_all_v(Lane& /*lane*/, const Buffer& /*send*/, Buffer& recv,
                    const ExchangeRows& rows) override {
    ++calls_.rows;
    std::ranges::fill(recv.as<std::int64_t>().first(static_cast<std::size_t>(rows.recv[0])),
                      ++exchange_);
  }
  void align(Lane& /*lane*/) override { ++calls_.aligned; }
  void begin_layer(int routing) override { calls_.layers.push_back(routing); }
  void close() override { ++calls_.closed; }

 private:
  Calls& calls_;
  std::int64_t exchange_ = 0;
};

struct LocalCopies : testing::Test {
  std::unique_ptr<Backend> backend = make_cpu_backend({.num_threads = 1});
  std::unique_ptr<Lane> lane = backend->make_lane();
  Calls calls;
  std::unique_ptr<Transport> transport =
      make_local_copy(std::make_unique<Numbered>(calls), *backend);

  // What lies in a receive buffer of four 8-byte rows then; -1 is what nobody wrote.
  using Received = std::vector<std::int64_t>;
  Received counts() {
    Buffer send = backend->make_buffer(32), recv = backend->make_buffer(32);
    backend->poison(recv);
    transport->exchange_counts(*lane, send, recv, std::vector<int>{4});
    return {recv.as<std::int64_t>().begin(), recv.as<std::int64_t>().end()};
  }
  Received rows(std::int64_t num_rows, std::int64_t capacity = 0) {
    Buffer send = backend->make_buffer(32), recv = backend->make_buffer(32);
    backend->poison(recv);
    const std::vector<std::int64_t> of_rank = {num_rows};
    transport->all_to_all_v(
        *lane, send, recv,
        {.send = of_rank, .recv = of_rank, .row_bytes = 8, .capacity = capacity});
    return {recv.as<std::int64_t>().begin(), recv.as<std::int64_t>().end()};
  }
  // Two layers of three exchanges; the second one dispatches nothing.
  void rehearse() {
    transport->begin_layer(0);
    counts(), rows(3), rows(2);
    transport->begin_layer(1);
    counts(), rows(0), rows(4);
    transport->end_rehearsal();
  }
};

TEST_F(LocalCopies, BringTheRowsOfTheRehearsalAgainWhateverTheOrderOfLayers) {
  rehearse();
  for (int repeat = 0; repeat < 2; ++repeat) {
    transport->begin_layer(1);
    EXPECT_EQ(counts(), Received(4, 4));
    EXPECT_EQ(rows(0), (Received{-1, -1, -1, -1}));
    EXPECT_EQ(rows(4), Received(4, 6));
    transport->begin_layer(0);
    EXPECT_EQ(counts(), Received(4, 1));
    EXPECT_EQ(rows(3), (Received{2, 2, 2, -1}));
    EXPECT_EQ(rows(2), (Received{3, 3, -1, -1}));
  }
  EXPECT_EQ(calls.counts, 2);
  EXPECT_EQ(calls.rows, 4);
}

// A layer that is rehearsed again: the later rows count.
TEST_F(LocalCopies, KeepTheLastRehearsal) {
  for (int repeat = 0; repeat < 2; ++repeat) {
    transport->begin_layer(0);
    counts(), rows(1), rows(1);
  }
  transport->end_rehearsal();
  transport->begin_layer(0);
  EXPECT_EQ(counts(), Received(4, 4));
}

TEST_F(LocalCopies, RefuseWhatWasNotRehearsed) {
  EXPECT_THROW(rows(1), RunError);  // of no layer
  rehearse();
  EXPECT_THROW(counts(), RunError);  // of no layer
  EXPECT_THROW(transport->begin_layer(2), RunError);
  transport->begin_layer(0);
  counts();
  EXPECT_THROW(rows(2), RunError);  // three were
  transport->begin_layer(0);
  counts(), rows(3), rows(2);
  EXPECT_THROW(rows(2), RunError);  // a third exchange of rows
}

TEST_F(LocalCopies, AreOfExactCapacity) {
  transport->begin_layer(0);
  EXPECT_THROW(rows(1, 2), RunError);
}

TEST_F(LocalCopies, LeaveTheRestToTheRealTransport) {
  rehearse();
  transport->align(*lane);
  transport->close();
  EXPECT_EQ(calls.aligned, 1);
  EXPECT_EQ(calls.closed, 1);
  EXPECT_EQ(calls.layers, (std::vector<int>{0, 1}));
}

// EP1 by the transport of the fixture, which counts.
class CountedLocal final : public Transport {
 public:
  explicit CountedLocal(Calls& calls) : calls_(calls) {}
  void exchange_counts(Lane& lane, const Buffer& send, Buffer& recv,
                       std::span<const int> slots) override {
    ++calls_.counts;
    inner_.exchange_counts(lane, send, recv, slots);
  }
  void all_to_all_v(Lane& lane, const Buffer& send, Buffer& recv,
                    const ExchangeRows& rows) override {
    ++calls_.rows;
    inner_.all_to_all_v(lane, send, recv, rows);
  }
  void close() override {}

 private:
  Calls& calls_;
  LocalTransport inner_;
};

RunnerHooks hooks_of_one_rank() {
  return {.all_max = [](int value) { return value; },
          .all_max_s = [](std::span<double>) {},
          .align = [] {},
          .stop_wish = [] { return 0; },
          .enter_phase = [](const std::string&) {},
          .before_oracle = [] {},
          .delay = {}};
}

// A whole point: only the check before timing exchanges, and the check after it, on poisoned
// buffers, finds the values right.
TEST(LocalCopyPoint, MovesNothingAfterTheCheckAndComputesTheSame) {
  for (const ExchangeUnit unit : {ExchangeUnit::assignment, ExchangeUnit::rank}) {
    for (const DType dtype : {DType::bf16, DType::fp32}) {
      SweepPoint point = layer_point();
      point.exchange_unit = unit;
      point.dtype = dtype;
      point.layers = 2;
      point.vary_routing = 3;
      point.warmup = 1;
      point.iterations = 4;
      point.transport = "local_copy";
      Calls calls;
      const auto backend = make_cpu_backend({.num_threads = 1});
      const auto transport = make_local_copy(std::make_unique<CountedLocal>(calls), *backend);
      const RankWork work = plan_rank_work(point, 0);
      ExpertWeights weights = prepare_weights(work, *backend, catalog_gemm(point));
      const RankOutcome outcome =
          run_point(work, *backend, *transport, weights, hooks_of_one_rank());
      EXPECT_TRUE(outcome.measured);
      EXPECT_TRUE(outcome.check_before.passed());
      EXPECT_TRUE(outcome.check_after.passed()) << outcome.check_after.problem.value_or("");
      EXPECT_EQ(calls.counts, 6);
      EXPECT_EQ(calls.rows, 12);
    }
  }
}

const bool kFixedAdded = TransportCatalog::instance().add(
    {.name = "a_fixed_one", .backend = "picky", .summary = "", .capacity = Capacity::fixed});
const bool kUsualAdded = TransportCatalog::instance().add(
    {.name = "b_usual",
     .backend = "picky",
     .summary = "",
     .refuses = []() -> std::optional<std::string> { return "library too old"; }});
const bool kOtherAdded =
    TransportCatalog::instance().add({.name = "c_other", .backend = "picky", .summary = ""});
const bool kPickyAdded = BackendCatalog::instance().add(
    {.name = "picky", .summary = "", .default_transport = "b_usual", .default_grouped_gemm = ""});
const bool kOldAdded = BackendCatalog::instance().add(
    {.name = "old", .summary = "", .default_transport = "b_usual", .default_grouped_gemm = ""});

TEST(RealTransport, IsTheOwnOneOrWhatTheBackendHas) {
  EXPECT_EQ(real_transport("alltoallv", "cpu").name, "alltoallv");
  EXPECT_EQ(real_transport("local_copy", "cpu").name, "pairwise");
  EXPECT_EQ(real_transport("local_copy", "picky").name, "c_other");
  EXPECT_EQ(real_transport("local_copy", "old").name, "b_usual");
}

TEST(RealTransport, RefusesForTheLocalCopyToo) {
  SweepPoint point = layer_point(4);
  point.transport = "local_copy";
  const RankWork work = plan_rank_work(point, 0);
  const auto refusal = [&work](const std::string& name) {
    return exchange_refusal(
               work, {.name = name, .device = "", .device_id = "", .dtypes = {}, .libraries = {}})
        .value_or("");
  };
  EXPECT_EQ(refusal("cpu"), "");
  EXPECT_EQ(refusal("old"), "transport b_usual: library too old");
}

}  // namespace
}  // namespace epsweep
