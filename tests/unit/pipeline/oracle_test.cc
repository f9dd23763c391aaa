// The check must fail when the layer is wrong: every kind of mistake, and the smallest one.
#include "pipeline/oracle.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

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

// No backend without a GPU computes in fp8, so the expected rows stand in for its outputs.
class OracleOnFp8 : public testing::TestWithParam<DType> {
 protected:
  OracleOnFp8() : point_(point()), work_(plan_rank_work(point_, 0)) {
    std::vector<std::int64_t> tokens(static_cast<std::size_t>(point_.tokens_global()));
    std::iota(tokens.begin(), tokens.end(), std::int64_t{0});
    for (const double value : rows_of(work_.traces[0], tokens)) {
      out_.push_back(static_cast<float>(value));
    }
  }
  static SweepPoint point() {
    SweepPoint point = layer_point();
    point.dtype = GetParam();
    return point;
  }
  std::vector<double> rows_of(const Trace& trace, std::span<const std::int64_t> tokens) const {
    return expected_rows(point_, 0, trace, work_.placements[0], tokens);
  }

  SweepPoint point_;
  RankWork work_;
  std::vector<float> out_;
};

TEST_P(OracleOnFp8, PassesWhatItExpects) {
  const OracleResult result = Oracle(work_).check(0, out_);
  EXPECT_FALSE(result.problem.has_value());
  EXPECT_LT(result.worst_error, 1e-6);
}

// Every assignment of every checked token that has a tenth of its row's weight or more.
TEST_P(OracleOnFp8, CatchesTheLossOfAnAssignment) {
  const Trace& trace = work_.traces[0];
  int lost = 0;
  for (const std::int64_t token : work_.check_tokens[0]) {
    const std::vector<double> weights = expected_router_weights(point_, 0, trace, token);
    const double all =
        std::sqrt(std::inner_product(weights.begin(), weights.end(), weights.begin(), 0.0));
    for (std::size_t j = 0; j < weights.size(); ++j) {
      if (weights[j] < 0.1 * all) continue;
      Trace alone = trace;
      alone.top_k = 1;
      alone.experts.assign(static_cast<std::size_t>(trace.num_tokens), trace.of_token(token)[j]);
      const std::int64_t tokens[] = {token};
      const std::vector<double> part = rows_of(alone, tokens);
      std::vector<float> spoilt = out_;
      for (std::size_t col = 0; col < part.size(); ++col) {
        spoilt[static_cast<std::size_t>(token) * part.size() + col] -=
            static_cast<float>(part[col]);
      }
      EXPECT_TRUE(Oracle(work_).check(0, spoilt).problem.has_value()) << token << " " << weights[j];
      ++lost;
    }
  }
  EXPECT_GT(lost, 3);
}

INSTANTIATE_TEST_SUITE_P(DTypes, OracleOnFp8, testing::Values(DType::fp8, DType::fp8_block128));

INSTANTIATE_TEST_SUITE_P(DTypes, OracleOnOutputs, testing::Values(DType::bf16, DType::fp32));

}  // namespace
}  // namespace epsweep
