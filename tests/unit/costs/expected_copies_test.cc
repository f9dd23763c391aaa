#include "costs/expected_copies.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "plan/plan.h"
#include "unit/workload/sample_points.h"

namespace epsweep {
namespace {

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

std::vector<double> equal_shares(int ep_size) {
  return std::vector<double>(static_cast<std::size_t>(ep_size), 1.0 / ep_size);
}

// Neighbouring ranks on domains of `domain_size`.
GroupPlaces in_blocks(int ep_size, int domain_size) {
  GroupPlaces places;
  for (int rank = 0; rank < ep_size; ++rank) places.domain_of_rank.push_back(rank / domain_size);
  places.host_of_rank = places.domain_of_rank;
  places.num_hosts = places.num_domains = (ep_size + domain_size - 1) / domain_size;
  return places;
}

double distinct_ranks(int num_experts, int top_k, int ep_size) {
  return sum(
      uniform_destinations(make_placement("contiguous", {num_experts, ep_size}), top_k, nullptr)
          .hits_of_rank);
}

// Distinct destination ranks, P * (1 - C(E - E/P, k) / C(E, k)) in exact integers.
TEST(ExpectedCopies, distinct_ranks_of_uniform_routing) {
  const std::vector<double> want_256 = {1.9930, 3.6142, 5.2947, 6.5233,
                                        7.2668, 7.6758, 7.8902, 8.0000};
  int ep_size = 2;
  for (const double want : want_256) {
    EXPECT_NEAR(distinct_ranks(256, 8, ep_size), want, 6e-5) << ep_size;
    ep_size *= 2;
  }
  const std::vector<double> want_896 = {7.0736, 10.3541, 12.8293, 14.3619, 15.2162};
  ep_size = 8;
  for (const double want : want_896) {
    EXPECT_NEAR(distinct_ranks(896, 16, ep_size), want, 6e-5) << ep_size;
    ep_size *= 2;
  }
}

TEST(ExpectedCopies, hit_probability_at_its_ends) {
  EXPECT_EQ(hit_probability(8, 0, 2), 0);
  EXPECT_EQ(hit_probability(8, 8, 2), 1);
  EXPECT_EQ(hit_probability(8, 7, 2), 1);  // one unmarked cannot be picked twice
  EXPECT_EQ(hit_probability(8, 1, 8), 1);
  EXPECT_DOUBLE_EQ(hit_probability(8, 1, 1), 1 / 8.0);
  EXPECT_NEAR(hit_probability(16384, 1, 1), 1 / 16384.0, 1e-15);
  EXPECT_NEAR(hit_probability(16384, 64, 16), 0.06072889969973494, 1e-14);
  EXPECT_THROW(hit_probability(8, 9, 2), RunError);
  EXPECT_THROW(hit_probability(8, 1, 9), RunError);
}

// 30 experts on 8 ranks: 4,4,4,4,4,4,3,3; 100 tokens: 13,13,13,13,12,12,12,12; two domains of four
// ranks with 16 and 14 experts. Recomputed with binomials in exact integers.
TEST(ExpectedCopies, uneven_slots_tokens_and_domains) {
  const Placement placement = make_placement("contiguous", {30, 8});
  const GroupPlaces places = in_blocks(8, 4);
  const CopiesPerToken copies =
      expected_copies(uniform_destinations(placement, 2, &places),
                      {0.13, 0.13, 0.13, 0.13, 0.12, 0.12, 0.12, 0.12}, &places);
  EXPECT_NEAR(copies.a, 2, 1e-12);
  EXPECT_NEAR(copies.a_self, 0.2506666667, 1e-9);
  EXPECT_NEAR(copies.b, 1.9034482759, 1e-9);
  EXPECT_NEAR(copies.b_self, 0.2385287356, 1e-9);
  EXPECT_NEAR(copies.d, 1.9034482759 - 0.2385287356, 1e-9);
  EXPECT_NEAR(copies.domains->c, 1.5149425287, 1e-9);
  EXPECT_NEAR(copies.domains->e, 0.7561379310, 1e-9);
  EXPECT_NEAR(copies.domains->a_intra, 0.752, 1e-9);
  EXPECT_NEAR(copies.domains->a_inter, 2 - 0.2506666667 - 0.752, 1e-9);
  EXPECT_NEAR(copies.domains->b_intra, 0.7155862068, 1e-9);
  EXPECT_NEAR(copies.domains->b_inter, 1.9034482759 - 0.2385287356 - 0.7155862068, 1e-9);
}

TEST(ExpectedCopies, remote_copies_of_uniform_routing) {
  // D(P) * (1 - 1/P): 5.2947 * 7/8 and 7.6758 * 63/64.
  for (const auto& [ep_size, want] : {std::pair{8, 4.6328}, std::pair{64, 7.5558}}) {
    const DestinationRates rates =
        uniform_destinations(make_placement("contiguous", {256, ep_size}), 8, nullptr);
    EXPECT_NEAR(expected_copies(rates, equal_shares(ep_size), nullptr).d, want, 1e-4);
  }
}

ExpectedCopies expectation(const SweepPoint& point, const std::optional<GroupPlaces>& places = {}) {
  SampleCache samples;
  ExpectedCopiesSum sum(point, places, samples);
  for (int layer = 0; layer < point.layers; ++layer) {
    const Trace trace = draw_trace(point, layer);
    sum.add_layer(layer, place_experts(point, layer, rows_per_expert(trace)));
  }
  return sum.finish().value();
}

SweepPoint placed_point(const std::string& distribution, int num_experts, int top_k,
                        std::int64_t num_tokens, int ep_size) {
  SweepPoint point = sample_point(distribution, num_experts, top_k, num_tokens, ep_size);
  point.placement = "contiguous";
  return point;
}

TEST(ExpectedCopies, the_method_is_named) {
  const SweepPoint uniform = placed_point("uniform", 64, 8, 32, 8);
  EXPECT_EQ(expectation(uniform).method, ExpectationMethod::closed_form);
  EXPECT_EQ(expectation(uniform).sample_tokens, 0);
  const SweepPoint zipf = placed_point("zipf", 64, 8, 32, 8);
  EXPECT_EQ(expectation(zipf).method, ExpectationMethod::monte_carlo);
  EXPECT_EQ(expectation(zipf).sample_tokens, 4096);
  SweepPoint replicas = uniform;
  replicas.placement = "eplb";
  replicas.redundant_slots = 64;
  EXPECT_EQ(expectation(replicas).method, ExpectationMethod::monte_carlo);
}

TEST(ExpectedCopies, a_sample_agrees_with_the_closed_form) {
  const SweepPoint point = placed_point("uniform", 256, 8, 64, 16);
  const Placement placement = make_placement("random", {256, 16});
  const GroupPlaces places = in_blocks(16, 4);
  const DestinationRates sampled = sampled_destinations(draw_sample(point, 0), placement, &places);
  const DestinationRates exact = uniform_destinations(placement, 8, &places);
  EXPECT_NEAR(sum(sampled.rows_to_rank), 8, 1e-12);
  EXPECT_NEAR(sum(sampled.hits_of_rank), sum(exact.hits_of_rank), 0.05);
  EXPECT_NEAR(sum(sampled.hits_of_domain), sum(exact.hits_of_domain), 0.03);
  for (std::size_t rank = 0; rank < 16; ++rank) {
    EXPECT_NEAR(sampled.hits_of_rank[rank], exact.hits_of_rank[rank], 0.04);
  }
}

// DeepSeek-V3's groups, independent loads: 8 groups of 32 experts, the best 4 by the sum of two.
SweepPoint v3_point(const std::string& distribution, int ep_size) {
  SweepPoint point = placed_point(distribution, 256, 8, 64, ep_size);
  point.model.router = {
      .scoring = Scoring::sigmoid, .num_groups = 8, .topk_groups = 4, .selection_bias = true};
  return point;
}

TEST(ExpectedCopies, distinct_ranks_of_group_limited_routing) {
  int ep_size = 2;
  for (const double want : {1.96, 3.10, 3.95, 5.71, 6.85, 7.49}) {
    EXPECT_NEAR(expectation(v3_point("group_limited", ep_size)).per_token.b, want, 0.02 * want)
        << ep_size;
    ep_size *= 2;
  }
}

TEST(ExpectedCopies, the_models_own_router_is_group_limited_too) {
  for (const auto& [ep_size, want] : {std::pair{8, 3.95}, std::pair{64, 7.49}}) {
    const ExpectedCopies expected = expectation(v3_point("gate", ep_size));
    EXPECT_NEAR(expected.per_token.b, want, 0.03 * want) << ep_size;
    EXPECT_EQ(expected.sample_tokens, 4096);
  }
}

// Two replicas of every expert, chosen by a hash of the token, against a long trace.
TEST(ExpectedCopies, replicas_are_sampled) {
  SweepPoint point = placed_point("uniform", 16, 4, 20'000, 16);
  point.placement = "eplb";
  point.redundant_slots = 16;
  point.topology = {.ranks_per_host = 4};
  const auto places = declared_places(point);
  const Trace trace = draw_trace(point, 0);
  const Placement placement = place_experts(point, 0, rows_per_expert(trace));
  const Traffic counted = count_layer(trace, placement, token_ranges(point), 64, &*places).traffic;
  const CopiesPerToken found = copies_per_token(counted, 20'000).value();
  const CopiesPerToken expected = expectation(point, places).per_token;
  EXPECT_NEAR(expected.b, found.b, 0.03);
  EXPECT_NEAR(expected.d, found.d, 0.03);
  EXPECT_NEAR(expected.b_self, found.b_self, 0.01);
  EXPECT_NEAR(expected.domains->c, found.domains->c, 0.03);
  EXPECT_NEAR(expected.domains->e, found.domains->e, 0.03);
  EXPECT_NEAR(expected.domains->a_intra, found.domains->a_intra, 0.03);
}

// Counted over many tokens every letter comes near what was expected of each distribution.
TEST(ExpectedCopies, every_distribution_meets_its_expectation) {
  for (const std::string& name : DistributionCatalog::instance().names()) {
    SCOPED_TRACE(name);
    if (DistributionCatalog::instance().at(name).foresight == Foresight::recorded) continue;
    SweepPoint point = placed_point(name, 64, 8, 20'000, 8);
    point.topology = {.ranks_per_host = 2};
    const auto places = declared_places(point);
    const Traffic traffic = count_layer(draw_trace(point, 0), make_placement("contiguous", {64, 8}),
                                        token_ranges(point), 64, &*places)
                                .traffic;
    const CopiesPerToken found = copies_per_token(traffic, 20'000).value();
    const CopiesPerToken expected = expectation(point, places).per_token;
    EXPECT_NEAR(expected.a, 8, 1e-9);
    EXPECT_NEAR(expected.a_self, found.a_self, 0.03);
    EXPECT_NEAR(expected.b, found.b, 0.06);
    EXPECT_NEAR(expected.d, found.d, 0.06);
    EXPECT_NEAR(expected.domains->c, found.domains->c, 0.04);
    EXPECT_NEAR(expected.domains->e, found.domains->e, 0.04);
    EXPECT_NEAR(expected.domains->a_intra, found.domains->a_intra, 0.06);
    EXPECT_NEAR(expected.domains->b_intra, found.domains->b_intra, 0.06);
  }
}

TEST(ExpectedCopies, nothing_is_expected_of_recordings_and_of_no_tokens) {
  SampleCache samples;
  for (const SweepPoint& point :
       {placed_point("recorded_trace", 64, 8, 64, 8), placed_point("uniform", 64, 8, 0, 8)}) {
    ExpectedCopiesSum sum(point, {}, samples);
    sum.add_layer(0, make_placement("contiguous", {64, 8}));
    EXPECT_FALSE(sum.finish().has_value());
  }
}

// Layers have their own loads; the mean over them is what is shown.
TEST(ExpectedCopies, mean_over_layers) {
  SweepPoint point = placed_point("zipf", 64, 8, 64, 8);
  const double first = expectation(point).per_token.b;
  point.layers = 2;
  SampleCache samples;
  const Placement placement = make_placement("contiguous", {64, 8});
  const double second =
      sum(sampled_destinations(draw_sample(point, 1), placement, nullptr).hits_of_rank);
  EXPECT_NE(first, second);
  EXPECT_NEAR(expectation(point).per_token.b, (first + second) / 2, 1e-12);
}

// Case C28.
TEST(ExpectedCopies, active_experts_of_uniform_routing) {
  const std::vector<std::pair<std::int64_t, double>> cases = {
      {1, 8.0}, {8, 57.4}, {32, 163.3}, {64, 222.4}, {1024, 256.0}};
  for (const auto& [num_tokens, want] : cases) {
    EXPECT_NEAR(expected_active_experts(256, 8, num_tokens), want, 0.05) << num_tokens;
    double active = 0;
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
      SweepPoint point = sample_point("uniform", 256, 8, num_tokens);
      point.seed = seed;
      const std::vector<std::int64_t> rows = rows_per_expert(draw_trace(point, 0));
      active += static_cast<double>(rows.size()) -
                static_cast<double>(std::ranges::count(rows, std::int64_t{0}));
    }
    EXPECT_NEAR(active / 200, want, 0.02 * want) << num_tokens;
  }
  EXPECT_EQ(expected_active_experts(8, 8, 1), 8);
  EXPECT_EQ(expected_active_experts(8, 8, 0), 0);
  EXPECT_EQ(expected_active_experts(256, 8, 0), 0);
}

}  // namespace
}  // namespace epsweep
