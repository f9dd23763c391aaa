// A layer at EP = world size gives the same bits as at EP1, whatever transport and placement.
#include <gtest/gtest.h>

#include "cpu/cpu_backend.h"
#include "mpi/ep_group.h"
#include "support/layer_fixture.h"
#include "support/mpi_world.h"

namespace epsweep {
namespace {

// Tokens of one rank cut out of the outputs of EP1, which every rank computes by itself.
std::vector<float> own_part(const LayerOutputs& all, std::size_t layer, TokenRange own) {
  const auto io = static_cast<std::size_t>(all.work.point.model.expert_io_dim);
  const auto begin = all.of_layer[layer].begin() +
                     static_cast<std::ptrdiff_t>(static_cast<std::size_t>(own.begin) * io);
  return {begin, begin + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(own.size()) * io)};
}

void expect_same_as_ep1(const SweepPoint& point) {
  const Comm& world = mpi_world();
  EpGroup group(world.split(0, world.rank()), 0, 1);
  const auto transport = TransportCatalog::instance().at(point.transport).make(group, nullptr);
  const LayerOutputs wide = run_layers(point, world.rank(), *transport, catalog_gemm(point));
  transport->close();
  group.close();
  EXPECT_TRUE(wide.counts_match);
  EXPECT_EQ(check_outputs(wide).problem.value_or(""), "");

  SweepPoint narrow = point;
  narrow.ep_size = 1;
  narrow.placement = "contiguous";
  narrow.redundant_slots = 0;
  narrow.concurrency = {.mode = ConcurrencyMode::fixed_global,
                        .tokens = point.tokens_global(),
                        .tokens_per_rank = {}};
  LocalTransport local;
  const LayerOutputs alone = run_layers(narrow, 0, local, catalog_gemm(narrow));
  for (std::size_t layer = 0; layer < wide.of_layer.size(); ++layer) {
    EXPECT_EQ(wide.of_layer[layer], own_part(alone, layer, wide.work.own_tokens()))
        << point_label(point);
  }
}

TEST(Layer, WidthTransportAndPlacementDoNotChangeTheResult) {
  for (const std::string& transport : moving_transports()) {
    for (const char* placement : {"contiguous", "round_robin", "random"}) {
      for (const DType dtype : {DType::bf16, DType::fp32}) {
        SweepPoint point = layer_point(mpi_world().size(), 37);
        point.transport = transport;
        point.placement = placement;
        point.dtype = dtype;
        point.layers = 2;
        expect_same_as_ep1(point);
      }
    }
  }
}

// Replicas are the same expert on several ranks; layers differ in who has which.
TEST(Layer, ReplicasDoNotChangeTheResult) {
  SweepPoint point = layer_point(mpi_world().size(), 61);
  point.routing = {.distribution = "zipf", .params = {{"zipf_alpha", 1.2}}, .file = {}};
  point.layers = 2;
  const int ep_size = point.ep_size, num_experts = point.model.num_experts;
  const int least = (ep_size - num_experts % ep_size) % ep_size;
  for (const std::string& transport : moving_transports()) {
    for (const int redundant :
         {least, std::min(least + 2 * ep_size, num_experts * (ep_size - 1))}) {
      point.transport = transport;
      point.placement = "eplb";
      point.redundant_slots = redundant;
      expect_same_as_ep1(point);
    }
  }
}

TEST(Layer, SkewDoesNotChangeTheResult) {
  SweepPoint point = layer_point(mpi_world().size(), 64);
  point.routing = {.distribution = "hot_rank",
                   .params = {{"hot_fraction", 0.9}, {"hot_ep_size", 4}},
                   .file = {}};
  expect_same_as_ep1(point);
}

TEST(Layer, TheModelsOwnRouterDoesNotChangeTheResult) {
  SweepPoint point = layer_point(mpi_world().size(), 40);
  point.model.router = {.scoring = Scoring::sigmoid,
                        .renormalize = true,
                        .num_groups = 4,
                        .topk_groups = 2,
                        .selection_bias = true};
  for (const char* distribution : {"gate", "group_limited"}) {
    point.routing = {.distribution = distribution, .params = {}, .file = {}};
    if (point.routing.distribution == "group_limited") {
      point.routing.params = {{"sigma_block", 0}, {"sigma_subblock", 0.3}, {"sigma_expert", 0.5}};
    }
    expect_same_as_ep1(point);
  }
}

// Case C09: ranks without experts join in.
TEST(Layer, RanksWithoutExpertsJoinIn) {
  SweepPoint point = layer_point(mpi_world().size(), 20);
  point.model.num_experts = 3;
  point.allow_empty_ranks = true;
  expect_same_as_ep1(point);
}

// Case C52: a rank without tokens, all tokens to few experts, no tokens at all.
TEST(Layer, ZerosAnywhereAreNoProblem) {
  SweepPoint point = layer_point(mpi_world().size());
  point.concurrency.mode = ConcurrencyMode::listed;
  point.concurrency.tokens_per_rank.assign(static_cast<std::size_t>(mpi_world().size()), 5);
  point.concurrency.tokens_per_rank.back() = 0;
  expect_same_as_ep1(point);
  point.routing = {
      .distribution = "k_hot", .params = {{"num_hot", 3}, {"hot_fraction", 1.0}}, .file = {}};
  expect_same_as_ep1(point);
  point.concurrency.tokens_per_rank.assign(static_cast<std::size_t>(mpi_world().size()), 0);
  expect_same_as_ep1(point);
}

}  // namespace
}  // namespace epsweep
