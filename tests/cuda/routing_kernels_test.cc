// Kernels that choose experts and sort assignments, against their CPU twins.
#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "cpu/router_op.h"
#include "cuda/kernels/router.h"
#include "cuda/kernels/slots.h"
#include "device_array.h"
#include "workload/dispatch_plan.h"

namespace epsweep::cuda {
namespace {

std::vector<std::int32_t> random_experts(std::int64_t tokens, int top_k, int num_experts) {
  const RandomStream random(3, epsweep::Stream::test, 8);
  std::vector<std::int32_t> experts;
  for (std::int64_t t = 0; t < tokens; ++t) {
    const auto first =
        random.below(static_cast<std::uint64_t>(t), static_cast<std::uint64_t>(num_experts));
    for (int j = 0; j < top_k; ++j) {
      experts.push_back(
          static_cast<std::int32_t>((first * first + static_cast<std::uint64_t>(j * 3)) %
                                    static_cast<std::uint64_t>(num_experts)));
    }
  }
  return experts;
}

struct SlotCase {
  std::int64_t tokens;
  int top_k, num_experts, ep_size, redundant;
};

class Slots : public testing::TestWithParam<SlotCase> {};

TEST_P(Slots, send_order_equals_the_plan) {
  const SlotCase c = GetParam();
  const Placement placement = make_placement(
      c.redundant > 0 ? "eplb" : "contiguous",
      {.num_experts = c.num_experts, .ep_size = c.ep_size, .redundant_slots = c.redundant});
  const std::vector<std::int32_t> experts = random_experts(c.tokens, c.top_k, c.num_experts);
  const auto assignments = static_cast<std::int64_t>(experts.size());
  const int num_slots = placement.num_slots();
  std::vector<std::int32_t> slots(experts.size()), position(experts.size());
  epsweep::assign_slots(placement.slot_table(), experts, 100, c.top_k, slots);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(num_slots));
  epsweep::count_slots(slots, counts);
  std::vector<std::int64_t> scratch = counts;
  epsweep::sort_by_slot(slots, scratch, position);

  TestStream stream;
  DeviceArray<std::int32_t> first(placement.first_of_expert), by_expert(placement.slots_by_expert),
      device_experts(experts), device_slots(assignments), device_position(assignments);
  DeviceArray<std::int64_t> device_counts(num_slots),
      device_scratch(sort_scratch_entries(assignments, num_slots));
  assign_slots(stream, first.data(), by_expert.data(), device_experts.data(), 100, c.top_k,
               assignments, device_slots.data());
  count_slots(stream, device_slots.data(), assignments, num_slots, device_counts.data(),
              device_scratch.data());
  place_by_slot(stream, device_slots.data(), assignments, device_scratch.data(), {},
                device_position.data());
  stream.synchronize();
  EXPECT_EQ(device_slots.host(), slots);
  EXPECT_EQ(device_counts.host(), counts);
  EXPECT_EQ(device_position.host(), position);

  // With a section for every rank, of more rows than any has.
  const std::int64_t capacity = assignments + 3;
  const std::vector<std::int32_t> rank_of_slot(placement.rank_of_slot.begin(),
                                               placement.rank_of_slot.end());
  const std::vector<std::int32_t> first_slot(placement.first_slot_of_rank.begin(),
                                             placement.first_slot_of_rank.end());
  scratch = counts;
  epsweep::sort_by_slot(slots, {.capacity = capacity, .first_slot_of_rank = first_slot}, scratch,
                        position);
  DeviceArray<std::int32_t> device_ranks(rank_of_slot), device_first(first_slot);
  place_by_slot(stream, device_slots.data(), assignments, device_scratch.data(),
                {.capacity = capacity,
                 .rank_of_slot = device_ranks.data(),
                 .first_slot_of_rank = device_first.data()},
                device_position.data());
  stream.synchronize();
  EXPECT_EQ(device_position.host(), position);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Slots,
                         testing::Values(SlotCase{0, 2, 8, 4, 0}, SlotCase{1, 1, 1, 1, 0},
                                         SlotCase{100, 8, 64, 8, 0}, SlotCase{333, 3, 30, 8, 2},
                                         SlotCase{64, 8, 256, 32, 64}, SlotCase{700, 4, 8, 2, 0}));

TEST(ExpertOrder, equals_the_plan) {
  const RandomStream random(4, epsweep::Stream::test, 9);
  for (const auto& [sources, locals] :
       std::vector<std::pair<int, int>>{{1, 1}, {4, 3}, {8, 40}, {32, 1}}) {
    std::vector<std::int64_t> counts;
    std::int64_t rows = 0;
    for (int i = 0; i < sources * locals; ++i) {
      counts.push_back(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(i), 7)));
      rows += counts.back();
    }
    std::vector<std::int32_t> want(static_cast<std::size_t>(rows)), in_sections(want);
    epsweep::order_by_expert(counts, sources, locals, want);
    epsweep::order_by_expert(counts, sources, locals, in_sections, 7 * locals);
    TestStream stream;
    DeviceArray<std::int64_t> device_counts(counts), rows_per_expert(locals),
        scratch(order_scratch_entries(sources, locals));
    DeviceArray<std::int32_t> order(rows);
    order_by_expert(stream, device_counts.data(), sources, locals, 7 * locals,
                    rows_per_expert.data(), order.data(), scratch.data());
    stream.synchronize();
    EXPECT_EQ(order.host(), in_sections);
    order_by_expert(stream, device_counts.data(), sources, locals, 0, rows_per_expert.data(),
                    order.data(), scratch.data());
    stream.synchronize();
    EXPECT_EQ(order.host(), want);
    const std::vector<std::int64_t> per_expert = rows_per_expert.host();
    for (int local = 0; local < locals; ++local) {
      std::int64_t sum = 0;
      for (int s = 0; s < sources; ++s) sum += counts[static_cast<std::size_t>(s * locals + local)];
      EXPECT_EQ(per_expert[static_cast<std::size_t>(local)], sum);
    }
  }
}

struct RouterCase {
  const char* name;
  std::int64_t tokens, hidden;
  int experts, top_k;
  ScoreFunction score;
  bool renormalize;
  GroupLimit groups;
  bool has_bias;
};

class Router : public testing::TestWithParam<RouterCase> {};

std::vector<float> random_floats(std::int64_t count, double range, std::uint64_t key) {
  const RandomStream random(6, epsweep::Stream::test, key);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(range * (2 * random.uniform(i) - 1));
  }
  return values;
}

Buffer host_buffer(std::vector<float>& values) {
  return {values.data(), static_cast<std::int64_t>(values.size() * 4), [](void*) {}};
}

TEST_P(Router, chooses_and_weighs_like_the_cpu) {
  const RouterCase c = GetParam();
  const bool by_logit = c.score == ScoreFunction::topk_softmax || !c.has_bias;
  std::vector<float> x = random_floats(c.tokens * c.hidden, 1, 1);
  std::vector<float> gate = random_floats(c.experts * c.hidden, 2.0 / std::sqrt(c.hidden), 2);
  std::vector<float> bias = random_floats(c.experts, 0.1, 3);
  const std::vector<std::int32_t> prescribed = random_experts(c.tokens, c.top_k, c.experts);
  const std::int64_t choices = c.tokens * c.top_k;

  std::vector<float> want_choice(static_cast<std::size_t>(choices)), want(want_choice);
  Buffer bias_buffer = host_buffer(bias), choice_buffer = host_buffer(want_choice),
         weight_buffer = host_buffer(want);
  const RouterOp op{.num_tokens = c.tokens,
                    .hidden_dim = c.hidden,
                    .num_experts = c.experts,
                    .top_k = c.top_k,
                    .dtype = DType::fp32,
                    .score = c.score,
                    .renormalize = c.renormalize,
                    .scale = 2.5F,
                    .groups = c.groups,
                    .select_by_logit = by_logit,
                    .selection_bias = c.has_bias ? &bias_buffer : nullptr};
  ThreadPool pool(1);
  CpuRouter().run(pool, op, host_buffer(x), host_buffer(gate), prescribed, choice_buffer,
                  weight_buffer);

  TestStream stream;
  DeviceArray<float> device_x(x), device_gate(gate), device_bias(bias), weights(choices),
      scratch(router_scratch_entries(c.tokens, c.hidden, c.experts));
  DeviceArray<std::int32_t> device_prescribed(prescribed), own(choices);
  router(stream, {.num_tokens = c.tokens,
                  .hidden_dim = c.hidden,
                  .num_experts = c.experts,
                  .top_k = c.top_k,
                  .type = ElementType::fp32,
                  .score = static_cast<RouterScore>(c.score),
                  .renormalize = c.renormalize,
                  .select_by_logit = by_logit,
                  .scale = 2.5F,
                  .num_groups = c.groups.num_groups,
                  .topk_groups = c.groups.topk_groups,
                  .group_score = static_cast<RouterGroupScore>(c.groups.score),
                  .x = device_x.data(),
                  .gate = device_gate.data(),
                  .selection_bias = c.has_bias ? device_bias.data() : nullptr,
                  .prescribed = device_prescribed.data(),
                  .own_choice = own.data(),
                  .weights = weights.data(),
                  .scratch = scratch.data()});
  stream.synchronize();
  const std::span<const std::int32_t> cpu_choice = choice_buffer.as<std::int32_t>();
  EXPECT_EQ(own.host(), std::vector<std::int32_t>(cpu_choice.begin(), cpu_choice.end()));
  const std::vector<float> got = weights.host();
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], want[i], 2e-5 * std::abs(want[i]) + 1e-7) << c.name << " " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Families, Router,
    testing::Values(
        RouterCase{"olmoe", 9, 64, 64, 8, ScoreFunction::softmax, false, {}, false},
        RouterCase{"qwen3", 3, 520, 128, 8, ScoreFunction::softmax, true, {}, false},
        RouterCase{"gpt_oss", 5, 48, 32, 4, ScoreFunction::topk_softmax, false, {}, false},
        RouterCase{"deepseek_v2",
                   4,
                   40,
                   160,
                   6,
                   ScoreFunction::softmax,
                   false,
                   {8, 3, GroupScore::max},
                   false},
        RouterCase{"deepseek_v3",
                   6,
                   1030,
                   256,
                   8,
                   ScoreFunction::sigmoid,
                   true,
                   {8, 4, GroupScore::top2_sum},
                   true},
        RouterCase{"deepseek_v4", 4, 33, 96, 6, ScoreFunction::sqrtsoftplus, true, {}, true},
        RouterCase{"llama4", 70, 16, 16, 1, ScoreFunction::sigmoid, false, {}, false},
        RouterCase{"one_expert", 2, 8, 1, 1, ScoreFunction::softmax, true, {}, false},
        RouterCase{"all_experts", 2, 8, 6, 6, ScoreFunction::softmax, true, {}, false},
        RouterCase{"no_tokens", 0, 8, 6, 2, ScoreFunction::softmax, true, {}, false}),
    [](const auto& family) { return family.param.name; });

TEST(Router, ties_go_to_the_lower_expert_and_group) {
  const std::vector<float> x(8, 1.0F), gate(16 * 8, 0.25F);
  TestStream stream;
  DeviceArray<float> device_x(x), device_gate(gate), weights(3),
      scratch(router_scratch_entries(1, 8, 16));
  DeviceArray<std::int32_t> prescribed(std::vector<std::int32_t>{0, 1, 2}), own(3);
  router(stream, {.num_tokens = 1,
                  .hidden_dim = 8,
                  .num_experts = 16,
                  .top_k = 3,
                  .type = ElementType::fp32,
                  .num_groups = 4,
                  .topk_groups = 2,
                  .x = device_x.data(),
                  .gate = device_gate.data(),
                  .prescribed = prescribed.data(),
                  .own_choice = own.data(),
                  .weights = weights.data(),
                  .scratch = scratch.data()});
  stream.synchronize();
  EXPECT_EQ(own.host(), (std::vector<std::int32_t>{0, 1, 2}));
}

}  // namespace
}  // namespace epsweep::cuda
