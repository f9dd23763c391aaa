// Which tokens and routings the timed passes run, seen by what reaches the router.
#include <gtest/gtest.h>

#include "base/chain_shape.h"
#include "pipeline/point_runner.h"
#include "support/forwarding_backend.h"
#include "support/forwarding_ops.h"
#include "support/layer_fixture.h"

namespace epsweep {
namespace {

struct RouterCall {
  std::vector<float> tokens;
  std::vector<std::int32_t> experts;
  bool operator==(const RouterCall&) const = default;
};

class NotingOps final : public ForwardingOps {
 public:
  using ForwardingOps::ForwardingOps;
  void router(Lane& lane, const RouterOp& op, const Buffer& x, const Buffer& gate,
              const Buffer& prescribed, Buffer& own_choice, Buffer& weights) override {
    const auto tokens = x.as<float>();
    const auto experts = prescribed.as<std::int32_t>();
    calls.push_back({{tokens.begin(), tokens.end()}, {experts.begin(), experts.end()}});
    ForwardingOps::router(lane, op, x, gate, prescribed, own_choice, weights);
  }
  std::vector<RouterCall> calls;
};

class NotingBackend final : public ForwardingBackend {
 public:
  TokenOps& token_ops() override { return ops; }
  NotingOps ops{ForwardingBackend::token_ops()};
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

std::vector<RouterCall> calls_of(const SweepPoint& point) {
  NotingBackend backend;
  LocalTransport transport;
  const RankWork work = plan_rank_work(point, 0);
  ExpertWeights weights = prepare_weights(work, backend, catalog_gemm(point));
  const RankOutcome outcome = run_point(work, backend, transport, weights, hooks_of_one_rank());
  EXPECT_TRUE(outcome.measured && outcome.check_before.passed() && outcome.check_after.passed());
  return backend.ops.calls;
}

TEST(TimedPasses, IterationsGoThroughTheSteps) {
  SweepPoint point = layer_point();
  point.dtype = DType::fp32;
  point.layers = 2;
  point.vary_routing = 3;
  point.warmup = 0;
  point.iterations = 4;
  const std::vector<RouterCall> calls = calls_of(point);
  const std::size_t checks = 6, aligned = 4 * 2, chain_layers = 4;
  ASSERT_EQ(calls.size(), 2 * checks + aligned + 4 * chain_layers);
  // The check runs every routing in order.
  const auto expect_step = [&](std::size_t call, std::size_t step, std::size_t layer) {
    EXPECT_EQ(calls[call], calls[step * 2 + layer]) << call;
  };
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t layer = 0; layer < 2; ++layer) {
      expect_step(checks + i * 2 + layer, i % 3, layer);
      expect_step(checks + aligned + i * chain_layers + layer, i % 3, layer);
      expect_step(checks + aligned + i * chain_layers + 2 + layer, (i + 1) % 3, layer);
    }
  }
  EXPECT_NE(calls[0].tokens, calls[2].tokens);
  EXPECT_EQ(calls[0].tokens, calls[1].tokens);
  EXPECT_NE(calls[0].experts, calls[2].experts);
  EXPECT_NE(calls[0].experts, calls[1].experts);
}

TEST(TimedPasses, IterationsAreAlikeUnlessTheyVary) {
  SweepPoint point = layer_point();
  point.dtype = DType::fp32;
  point.warmup = 1;
  point.iterations = 2;
  const std::vector<RouterCall> calls = calls_of(point);
  for (const RouterCall& call : calls) EXPECT_EQ(call, calls.front());
}

}  // namespace
}  // namespace epsweep
