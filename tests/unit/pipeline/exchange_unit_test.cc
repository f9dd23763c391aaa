// Exchange unit `rank` on one rank: the oracle, the other unit and faults.
#include <gmock/gmock.h>

#include "faults/faults.h"
#include "support/layer_fixture.h"

namespace epsweep {
namespace {

using testing::HasSubstr;

SweepPoint unit_point(std::int64_t tokens = 24) {
  SweepPoint point = layer_point(1, tokens);
  point.exchange_unit = ExchangeUnit::rank;
  return point;
}

LayerOutputs run(const SweepPoint& point) {
  LocalTransport transport;
  return run_layers(point, 0, transport, catalog_gemm(point));
}

TEST(ExchangeUnit, EveryKernelAndDtypeMatchesTheOracle) {
  for (const std::string& kernel : GroupedGemmCatalog::instance().names()) {
    for (const DType dtype : {DType::bf16, DType::fp32}) {
      SweepPoint point = unit_point();
      point.grouped_gemm = kernel;
      point.dtype = dtype;
      point.layers = 2;
      const LayerOutputs outputs = run(point);
      EXPECT_TRUE(outputs.counts_match);
      EXPECT_EQ(check_outputs(outputs).problem.value_or(""), "") << kernel << to_string(dtype);
    }
  }
}

// With one destination the only partial sum is the sum, and in fp32 nothing is rounded on its way.
TEST(ExchangeUnit, OneRankGivesTheBitsOfAssignment) {
  SweepPoint point = unit_point(50);
  point.dtype = DType::fp32;
  point.layers = 2;
  const LayerOutputs by_rank = run(point);
  point.exchange_unit = ExchangeUnit::assignment;
  EXPECT_EQ(by_rank.of_layer, run(point).of_layer);
}

// Rows of 6 bytes, so granules of 2, and columns that are not those of the tokens.
TEST(ExchangeUnit, OddLatentWidthMatchesTheOracle) {
  SweepPoint point = unit_point();
  point.model.expert_io_dim = 3;
  point.model.gemms_per_expert = 2;
  EXPECT_EQ(check_outputs(run(point)).problem.value_or(""), "");
}

TEST(ExchangeUnit, FewTokensAreNoProblem) {
  for (const std::int64_t tokens : {0, 1}) {
    const LayerOutputs outputs = run(unit_point(tokens));
    EXPECT_TRUE(outputs.counts_match);
    EXPECT_EQ(check_outputs(outputs).problem.value_or(""), "");
  }
}

struct Damaged {
  LayerOutputs outputs;
  std::string problem;
};
Damaged run_with(FaultKind kind) {
  const SweepPoint point = unit_point();
  const std::vector<Fault> faults = {{.kind = kind, .rank = 0, .ep_size = {}}};
  const auto backend = make_cpu_backend({.num_threads = 1});
  const auto transport = with_faults(std::make_unique<LocalTransport>(), faults, *backend);
  const GemmMaker make = catalog_gemm(point);
  Damaged damaged{.outputs = run_layers(point, 0, *transport,
                                        [&](const GemmShape& shape) {
                                          return with_faults(make(shape), shape, faults, *backend);
                                        }),
                  .problem = {}};
  damaged.problem = check_outputs(damaged.outputs).problem.value_or("passed");
  return damaged;
}

TEST(ExchangeUnit, FaultsAreCaught) {
  EXPECT_THAT(run_with(FaultKind::swap_experts).problem, HasSubstr("off by"));
  EXPECT_THAT(run_with(FaultKind::skip_expert).problem, HasSubstr("never written"));
  EXPECT_EQ(run_with(FaultKind::check_error).problem, "passed");
}

// The end of a message is the list of uses, so the rank that lost it knows.
TEST(ExchangeUnit, LostUsesDoNotMatchThePlan) {
  const Damaged damaged = run_with(FaultKind::drop_row);
  EXPECT_FALSE(damaged.outputs.counts_match);
  EXPECT_THAT(damaged.problem, HasSubstr("never written"));
}

// Damages one message of a layer: bytes [begin, end) of what is received arrive as 0xff.
class LossyTransport final : public Transport {
 public:
  LossyTransport(int message, std::size_t begin, std::size_t end)
      : message_(message), begin_(begin), end_(end) {}
  void exchange_counts(Lane& lane, const Buffer& send, Buffer& recv,
                       std::span<const int> slots) override {
    inner_.exchange_counts(lane, send, recv, slots);
  }
  void all_to_all_v(Lane& lane, const Buffer& send, Buffer& recv,
                    const ExchangeRows& rows) override {
    inner_.all_to_all_v(lane, send, recv, rows);
    if (message_-- != 0) return;
    std::ranges::fill(recv.as<std::byte>().subspan(begin_, end_ - begin_), std::byte{0xff});
  }
  void close() override {}

 private:
  LocalTransport inner_;
  int message_;
  std::size_t begin_, end_;
};

// A row is 128 bytes: the first copy, and the first partial sum.
TEST(ExchangeUnit, ALostCopyOrPartialSumIsCaught) {
  for (const int message : {0, 1}) {
    const SweepPoint point = unit_point();
    LossyTransport transport(message, 0, 128);
    const LayerOutputs outputs = run_layers(point, 0, transport, catalog_gemm(point));
    EXPECT_TRUE(outputs.counts_match);
    EXPECT_THAT(check_outputs(outputs).problem.value_or("passed"),
                HasSubstr("token 0: a value was never written"));
  }
}

}  // namespace
}  // namespace epsweep
