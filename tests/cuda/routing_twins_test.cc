// Choosing experts and sorting assignments on the CUDA backend against the CPU backend, on random
// shapes, zero rows and odd sizes included.
#include <cmath>
#include <tuple>

#include "twins.h"

namespace epsweep::cuda {
namespace {

struct Routed {
  std::vector<std::int32_t> own_choice;
  std::vector<float> weights;
};

struct RouterInput {
  RouterOp op;
  std::vector<float> x, gate, bias;
  std::vector<std::int32_t> prescribed;
};

Routed route(Side& side, RouterInput input) {
  const Buffer bias = side.with(input.bias);
  input.op.selection_bias = input.bias.empty() ? nullptr : &bias;
  const std::int64_t choices = input.op.num_tokens * input.op.top_k;
  Buffer own = side.poisoned(choices * 4), weights = side.poisoned(choices * 4);
  side.ops().router(side.lane(), input.op, side.with(input.x, input.op.dtype),
                    side.with(input.gate), side.with(input.prescribed), own, weights);
  return {side.host<std::int32_t>(own), side.host<float>(weights)};
}

enum class Logits { distinct, tied };

RouterInput random_router(Draws& draws, Logits logits) {
  RouterInput input;
  RouterOp& op = input.op;
  const auto groups = static_cast<int>(draws.one_of<std::int64_t>({1, 1, 2, 4, 8}));
  const auto size = static_cast<int>(draws.between(1, 40));
  op.num_tokens = draws.one_of<std::int64_t>({0, 1, 3, 9, 66});
  op.hidden_dim = draws.one_of<std::int64_t>({1, 7, 16, 65, 130, 530});
  op.num_experts = groups * size;
  op.groups = {.num_groups = groups,
               .topk_groups = static_cast<int>(draws.between(1, groups)),
               .score = draws.coin() ? GroupScore::max : GroupScore::top2_sum};
  op.top_k = static_cast<int>(draws.between(1, std::min(9, size * op.groups.topk_groups)));
  op.dtype = draws.coin() ? DType::bf16 : DType::fp32;
  op.score = draws.one_of({ScoreFunction::softmax, ScoreFunction::topk_softmax,
                           ScoreFunction::sigmoid, ScoreFunction::sqrtsoftplus});
  op.renormalize = draws.coin();
  op.scale = draws.coin() ? 1.0F : 2.5F;
  const bool has_bias = op.score != ScoreFunction::topk_softmax && draws.coin();
  op.select_by_logit = !has_bias;
  const std::int64_t columns = op.num_experts * op.hidden_dim;
  if (logits == Logits::tied) {
    // One column counts, so logits are few different numbers, and the same on both sides.
    input.x.assign(static_cast<std::size_t>(op.num_tokens * op.hidden_dim), 0.5F);
    input.gate.assign(static_cast<std::size_t>(columns), 0.0F);
    for (std::int64_t e = 0; e < op.num_experts; ++e) {
      input.gate[static_cast<std::size_t>(e * op.hidden_dim)] =
          static_cast<float>(draws.between(-3, 3));
    }
    if (has_bias) input.bias.assign(static_cast<std::size_t>(op.num_experts), 0.25F);
  } else {
    input.x = draws.floats(op.num_tokens * op.hidden_dim, 1);
    input.gate = draws.floats(columns, 3 / std::sqrt(static_cast<double>(op.hidden_dim)));
    if (has_bias) input.bias = draws.floats(op.num_experts, 0.2);
  }
  for (std::int64_t t = 0; t < op.num_tokens; ++t) {
    const auto choice = draws.places(op.top_k, op.num_experts);
    input.prescribed.insert(input.prescribed.end(), choice.begin(), choice.end());
  }
  return input;
}

TEST_F(Twins, routers_choose_and_weigh_alike) {
  for (const Logits logits : {Logits::distinct, Logits::tied}) {
    for (std::uint64_t key = 0; key < kCases / 2; ++key) {
      SCOPED_TRACE(key);
      Draws draws(key);
      const RouterInput input = random_router(draws, logits);
      const Routed got = route(cuda_, input), want = route(cpu_, input);
      EXPECT_EQ(got.own_choice, want.own_choice);
      ASSERT_EQ(got.weights.size(), want.weights.size());
      // Logits are sums of up to 530 products in different orders; the exponential passes their
      // rounding on.
      for (std::size_t i = 0; i < got.weights.size(); ++i) {
        ASSERT_NEAR(got.weights[i], want.weights[i], 2e-5 * std::abs(want.weights[i]) + 1e-7);
      }
    }
  }
}

TEST_F(Twins, assignments_go_to_the_same_slots_and_places) {
  for (std::uint64_t key = 0; key < kCases; ++key) {
    SCOPED_TRACE(key);
    Draws draws(100 + key);
    const std::int64_t experts = draws.one_of<std::int64_t>({1, 6, 64, 300});
    std::vector<std::int32_t> first = {0}, by_expert;
    for (std::int64_t e = 0; e < experts; ++e) {
      first.push_back(first.back() + static_cast<std::int32_t>(draws.between(1, 3)));
    }
    by_expert = draws.places(first.back(), first.back());
    const auto top_k = static_cast<int>(draws.between(1, 8));
    const std::int64_t assignments = top_k * draws.one_of<std::int64_t>({0, 1, 31, 32, 33, 200});
    const std::vector<std::int32_t> chosen = draws.indices(assignments, experts);
    const std::int64_t first_token = draws.between(0, 1 << 20);
    const SlotSort sort{.num_slots = first.back(), .assignments = assignments};
    expect_same([&](Side& side) {
      const Buffer firsts = side.with(first), slots_of = side.with(by_expert),
                   experts_of = side.with(chosen);
      Buffer slots = side.poisoned(assignments * 4), counts = side.poisoned(sort.num_slots * 8),
             position = side.poisoned(assignments * 4);
      side.ops().assign_slots(side.lane(),
                              {.first_of_expert = &firsts,
                               .slots_by_expert = &slots_of,
                               .first_token = first_token,
                               .top_k = top_k,
                               .assignments = assignments},
                              experts_of, slots);
      side.ops().count_slots(side.lane(), sort, slots, counts);
      const std::vector<std::int64_t> counted = side.host<std::int64_t>(counts);
      side.ops().sort_by_slot(side.lane(), sort, slots, counts, position);
      return std::tuple(side.host<std::int32_t>(slots), counted, side.host<std::int32_t>(position));
    });
  }
}

TEST_F(Twins, received_rows_get_the_same_order) {
  for (std::uint64_t key = 0; key < kCases; ++key) {
    SCOPED_TRACE(key);
    Draws draws(200 + key);
    const auto sources = static_cast<int>(draws.between(1, 33));
    const auto locals = static_cast<int>(draws.between(1, 20));
    const std::int64_t most = draws.one_of<std::int64_t>({0, 1, 3, 200});
    std::vector<std::int64_t> counts;
    std::int64_t rows = 0;
    for (int pair = 0; pair < sources * locals; ++pair) {
      counts.push_back(draws.coin() ? draws.between(0, most) : 0);
      rows += counts.back();
    }
    expect_same([&](Side& side) {
      const Buffer received = side.with(counts);
      Buffer order = side.poisoned(rows * 4);
      side.ops().order_by_expert(side.lane(), {.num_sources = sources, .num_local_experts = locals},
                                 received, order);
      return side.host<std::int32_t>(order);
    });
  }
}

}  // namespace
}  // namespace epsweep::cuda
