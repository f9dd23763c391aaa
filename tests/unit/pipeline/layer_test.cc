// A whole layer on one rank against the oracle, for every kernel, dtype and router family.
#include <cmath>

#include <gtest/gtest.h>

#include "support/forwarding_backend.h"
#include "support/layer_fixture.h"
#include "workload/payload.h"

namespace epsweep {
namespace {

OracleResult run_and_check(const SweepPoint& point) {
  LocalTransport transport;
  const LayerOutputs outputs = run_layers(point, 0, transport, catalog_gemm(point));
  EXPECT_TRUE(outputs.counts_match);
  return check_outputs(outputs);
}

TEST(Layer, EveryKernelAndDtypeMatchesTheOracle) {
  for (const std::string& kernel : GroupedGemmCatalog::instance().names()) {
    for (const DType dtype : {DType::bf16, DType::fp32}) {
      SweepPoint point = layer_point();
      point.grouped_gemm = kernel;
      point.dtype = dtype;
      point.layers = 2;
      const OracleResult result = run_and_check(point);
      EXPECT_FALSE(result.problem.has_value()) << kernel << ": " << *result.problem;
      EXPECT_GT(result.num_tokens_checked, 0);
      EXPECT_EQ(result.num_tokens_scanned, 2 * 24);
    }
  }
}

TEST(Layer, EveryRouterFamilyMatchesTheOracle) {
  for (const Scoring scoring :
       {Scoring::softmax, Scoring::topk_softmax, Scoring::sigmoid, Scoring::sqrtsoftplus}) {
    for (const bool renormalize : {false, true}) {
      SweepPoint point = layer_point();
      point.dtype = DType::fp32;
      point.model.router = {.scoring = scoring, .renormalize = renormalize, .scale = 2.5};
      const OracleResult result = run_and_check(point);
      EXPECT_FALSE(result.problem.has_value()) << static_cast<int>(scoring) << *result.problem;
    }
  }
}

// Another step has other tokens and other choices, and its layers the same weights.
TEST(Layer, EveryStepMatchesTheOracle) {
  SweepPoint point = layer_point();
  point.layers = 2;
  point.vary_routing = 3;
  LocalTransport transport;
  const LayerOutputs outputs = run_layers(point, 0, transport, catalog_gemm(point));
  EXPECT_TRUE(outputs.counts_match);
  const OracleResult result = check_outputs(outputs);
  EXPECT_FALSE(result.problem.has_value()) << *result.problem;
  EXPECT_EQ(result.num_tokens_scanned, 6 * 24);
  ASSERT_EQ(outputs.of_layer.size(), 6U);
  for (int step = 1; step < 3; ++step) {
    SweepPoint alone = point;
    alone.vary_routing = 1;
    alone.step = step;
    const LayerOutputs expected = run_layers(alone, 0, transport, catalog_gemm(alone));
    for (std::size_t layer = 0; layer < 2; ++layer) {
      const std::size_t routing = static_cast<std::size_t>(step) * 2 + layer;
      EXPECT_EQ(outputs.of_layer[routing], expected.of_layer[layer]);
      EXPECT_NE(outputs.of_layer[routing], outputs.of_layer[layer]);
      EXPECT_NE(outputs.work.traces[routing].experts, outputs.work.traces[layer].experts);
    }
  }
}

SweepPoint gate_point(DType dtype) {
  SweepPoint point = layer_point(1, 400);
  point.model.num_experts = 64;
  point.model.top_k = 6;
  point.model.router = {.scoring = Scoring::sigmoid,
                        .renormalize = true,
                        .scale = 2.5,
                        .num_groups = 8,
                        .topk_groups = 3,
                        .selection_bias = true};
  point.routing.distribution = "gate";
  point.dtype = dtype;
  point.layers = 2;
  return point;
}

// With a selection bias and groups, which an op that ignored either would miss.
TEST(Layer, TheRoutersOwnChoiceIsTheTraceOfGate) {
  for (const DType dtype : {DType::bf16, DType::fp32}) {
    const SweepPoint point = gate_point(dtype);
    LocalTransport transport;
    const LayerOutputs outputs = run_layers(point, 0, transport, catalog_gemm(point));
    EXPECT_FALSE(check_outputs(outputs).problem.has_value());
    for (std::size_t layer = 0; layer < 2; ++layer) {
      const std::vector<std::int32_t>& traced = outputs.work.traces[layer].experts;
      const std::vector<std::int32_t>& chosen = outputs.own_choice[layer];
      ASSERT_EQ(chosen.size(), traced.size());
      std::size_t same = 0;
      for (std::size_t i = 0; i < traced.size(); ++i) same += chosen[i] == traced[i] ? 1U : 0U;
      EXPECT_GE(same * 1000, traced.size() * 999) << to_string(dtype) << " layer " << layer;
    }
  }
}

TEST(Layer, LatentWidthAndTwoGemmExpertsMatchTheOracle) {
  SweepPoint point = layer_point();
  point.model.expert_io_dim = 16;
  point.model.gemms_per_expert = 2;
  const OracleResult result = run_and_check(point);
  EXPECT_FALSE(result.problem.has_value()) << *result.problem;
}

TEST(Layer, NoTokensIsNoProblem) {
  const OracleResult result = run_and_check(layer_point(1, 0));
  EXPECT_FALSE(result.problem.has_value());
  EXPECT_EQ(result.num_tokens_scanned, 0);
}

// gate_up of the first kind gives gate values whose SiLU is 1 and the row itself as up; down
// copies.
class IdentityGemm final : public GroupedGemm {
 public:
  explicit IdentityGemm(const GemmShape& shape) : shape_(shape) {}
  void prepare(const WeightSource&) override {}
  void warm(std::span<const std::int64_t>) override {}
  GemmWork run(Lane&, const Buffer& x, Buffer& y, std::span<const std::int64_t> rows) override {
    constexpr float kSiluIsOne = 1.27846454F;
    const auto k = static_cast<std::size_t>(shape_.k), n = static_cast<std::size_t>(shape_.n);
    std::size_t row = 0;
    for (const std::int64_t count : rows) {
      for (std::int64_t i = 0; i < count; ++i, ++row) {
        for (std::size_t col = 0; col < n; ++col) {
          const bool is_gate = n == 2 * k && col < k;
          y.as<float>()[row * n + col] = is_gate ? kSiluIsOne : x.as<float>()[row * k + col % k];
        }
      }
    }
    return {};
  }
  void flush_weights() override {}
  std::int64_t weight_bytes() const override { return 0; }

 private:
  GemmShape shape_;
};

TEST(Layer, IdentityExpertsReturnTheTokenTimesItsWeights) {
  SweepPoint point = layer_point();
  point.dtype = DType::fp32;
  point.model.ffn_dim = point.model.expert_io_dim;
  LocalTransport transport;
  const LayerOutputs outputs = run_layers(point, 0, transport, [](const GemmShape& shape) {
    return std::make_unique<IdentityGemm>(shape);
  });
  const PayloadMatrix tokens = token_matrix(point.seed, point.model.hidden_dim);
  std::vector<float> row(64);
  for (std::int64_t token = 0; token < 24; ++token) {
    tokens.fill_row(token, std::span(row));
    double sum = 0;
    for (const double w : expected_router_weights(point, 0, outputs.work.traces[0], token))
      sum += w;
    for (std::size_t col = 0; col < 64; ++col) {
      const float got = outputs.of_layer[0][static_cast<std::size_t>(token) * 64 + col];
      ASSERT_NEAR(got, sum * static_cast<double>(row[col]), 1e-5) << token << " " << col;
    }
  }
}

TEST(RankWork, CheckedTokensUseEverySlotThatHasRows) {
  SweepPoint point = layer_point(4, 200);
  point.placement = "eplb";
  point.redundant_slots = 12;
  const RankWork work = plan_rank_work(point, 1);
  const Placement& placement = work.placements[0];
  const std::vector<std::int64_t> tokens = covering_tokens(work.traces[0], placement);
  std::vector<std::int64_t> uses(24);
  for (const std::int64_t token : tokens) {
    for (const std::int32_t expert : work.traces[0].of_token(token)) {
      ++uses[static_cast<std::size_t>(placement.slot_of(expert, token))];
    }
  }
  const std::vector<std::int64_t> rows = rows_per_slot(placement, work.traces[0]);
  EXPECT_LT(tokens.size(), 24U);
  for (std::size_t slot = 0; slot < rows.size(); ++slot) EXPECT_EQ(uses[slot] > 0, rows[slot] > 0);
  for (const std::int64_t token : work.check_tokens[0]) {
    EXPECT_GE(token, work.own_tokens().begin);
    EXPECT_LT(token, work.own_tokens().end);
  }
}

// Layers have loads of their own, so they are placed by themselves.
TEST(RankWork, EveryLayerHasItsOwnPlacement) {
  SweepPoint point = layer_point(4, 200);
  point.layers = 2;
  point.placement = "eplb";
  point.redundant_slots = 4;
  const RankWork work = plan_rank_work(point, 1), other = plan_rank_work(point, 2);
  EXPECT_NE(work.placements[0].expert_of_slot, work.placements[1].expert_of_slot);
  for (std::size_t layer = 0; layer < 2; ++layer) {
    EXPECT_EQ(work.placements[layer].expert_of_slot, other.placements[layer].expert_of_slot);
    const auto sent = work.dispatch[layer].send_rows[2];
    EXPECT_EQ(sent, other.dispatch[layer].recv_rows[1]);
  }
  EXPECT_EQ(work.slots_of_rank, std::vector<int>(4, 4));
}

// Notes the ranges that profilers would see.
class NotingLane final : public Lane {
 public:
  explicit NotingLane(std::vector<std::string>& names) : names_(names) {}
  void synchronize() override {}
  void begin_range(const char* name) override { names_.push_back(name); }
  void end_range() override { names_.push_back("end"); }

 private:
  std::vector<std::string>& names_;
};

class NotingBackend final : public ForwardingBackend {
 public:
  std::unique_ptr<Lane> make_lane() override { return std::make_unique<NotingLane>(names); }
  std::vector<std::string> names;
};

TEST(Layer, NamesEveryStageForProfilers) {
  const SweepPoint point = layer_point();
  LocalTransport transport;
  NotingBackend backend;
  run_layers(point, 0, transport, catalog_gemm(point), backend);
  std::vector<std::string> want;
  for (int layer = 0; layer < point.layers; ++layer) {
    for (const std::string_view stage : kStageNames) {
      want.emplace_back(stage);
      want.emplace_back("end");
    }
  }
  EXPECT_EQ(backend.names, want);
}

}  // namespace
}  // namespace epsweep
