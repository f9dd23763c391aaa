// The check must fail when the layer is wrong: every kind of mistake, and the smallest one.
#include "pipeline/oracle.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gmock/gmock.h>

#include "faults/faults.h"
#include "support/layer_fixture.h"

namespace epsweep {
namespace {

using testing::HasSubstr;

OracleResult check_with(const SweepPoint& point, FaultKind kind) {
  const std::vector<Fault> faults = {{.kind = kind, .rank = 0, .ep_size = {}}};
  const auto backend = make_cpu_backend({.num_threads = 1});
  const auto transport = with_faults(std::make_unique<LocalTransport>(), faults, *backend);
  const GemmMaker make = catalog_gemm(point);
  return check_outputs(run_layers(point, 0, *transport, [&](const GemmShape& shape) {
    return with_faults(make(shape), shape, faults, *backend);
  }));
}

TEST(Oracle, CatchesSwappedExperts) {
  EXPECT_THAT(check_with(layer_point(), FaultKind::swap_experts).problem.value_or("passed"),
              HasSubstr("off by"));
}

TEST(Oracle, CatchesAnExpertWhoseOutputIsNotWritten) {
  EXPECT_THAT(check_with(layer_point(), FaultKind::skip_expert).problem.value_or("passed"),
              HasSubstr("never written"));
}

TEST(Oracle, CatchesARowThatDoesNotArrive) {
  EXPECT_THAT(check_with(layer_point(), FaultKind::drop_row).problem.value_or("passed"),
              HasSubstr("never written"));
}

TEST(Oracle, PassesWithoutAFault) {
  EXPECT_FALSE(check_with(layer_point(), FaultKind::check_error).problem.has_value());
}

class OracleOnOutputs : public testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    SweepPoint point = layer_point();
    point.dtype = GetParam();
    LocalTransport transport;
    outputs_ = run_layers(point, 0, transport, catalog_gemm(point));
    first_checked_ = static_cast<std::size_t>(outputs_.work.check_tokens[0].front());
  }
  float* checked_row() { return outputs_.of_layer[0].data() + first_checked_ * 64; }

  LayerOutputs outputs_;
  std::size_t first_checked_ = 0;
};

// Losing the assignment with the smallest weight of a token is the least that can go wrong.
TEST_P(OracleOnOutputs, CatchesTheLossOfTheLightestAssignment) {
  const SweepPoint& point = outputs_.work.point;
  const Trace& trace = outputs_.work.traces[0];
  const auto token = static_cast<std::int64_t>(first_checked_);
  const std::vector<double> weights = expected_router_weights(point, 0, trace, token);
  const auto lightest =
      static_cast<std::size_t>(std::ranges::min_element(weights) - weights.begin());
  // The token's row with this expert's part alone: the row of a trace in which it is the only one.
  Trace alone = trace;
  alone.top_k = 1;
  alone.experts.assign(static_cast<std::size_t>(trace.num_tokens), trace.of_token(token)[lightest]);
  const std::int64_t tokens[] = {token};
  const std::vector<double> part =
      expected_rows(point, 0, alone, outputs_.work.placements[0], tokens);
  for (std::size_t col = 0; col < 64; ++col) checked_row()[col] -= static_cast<float>(part[col]);
  EXPECT_TRUE(check_outputs(outputs_).problem.has_value());
}

TEST_P(OracleOnOutputs, CatchesSwappedTokens) {
  const auto& tokens = outputs_.work.check_tokens[0];
  ASSERT_GE(tokens.size(), 2U);
  std::swap_ranges(checked_row(), checked_row() + 64,
                   outputs_.of_layer[0].data() + static_cast<std::size_t>(tokens[1]) * 64);
  EXPECT_TRUE(check_outputs(outputs_).problem.has_value());
}

TEST_P(OracleOnOutputs, CatchesAnUnwrittenValueInATokenThatIsNotRecomputed) {
  outputs_.of_layer[0].back() = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(check_outputs(outputs_).problem.value_or("passed"), HasSubstr("token 23"));
}

INSTANTIATE_TEST_SUITE_P(DTypes, OracleOnOutputs, testing::Values(DType::bf16, DType::fp32));

}  // namespace
}  // namespace epsweep
