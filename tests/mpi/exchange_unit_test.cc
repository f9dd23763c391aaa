// Exchange unit `rank` at EP = world size: the oracle, and the bits that follow from a run with
// unit `assignment`.
#include <gtest/gtest.h>

#include "mpi/ep_group.h"
#include "support/mpi_world.h"
#include "support/unit_reference.h"

namespace epsweep {
namespace {

LayerOutputs run_wide(const SweepPoint& point) {
  const Comm& world = mpi_world();
  EpGroup group(world.split(0, world.rank()), 0, 1);
  const auto transport = TransportCatalog::instance().at(point.transport).make(group, nullptr);
  LayerOutputs outputs = run_layers(point, world.rank(), *transport, catalog_gemm(point));
  transport->close();
  group.close();
  EXPECT_TRUE(outputs.counts_match) << point_label(point);
  EXPECT_EQ(check_outputs(outputs).problem.value_or(""), "") << point_label(point);
  return outputs;
}

// The rows of all assignments of the group, from EP1 with unit `assignment`.
std::vector<AssignmentRows> assignment_rows(const SweepPoint& point) {
  SweepPoint alone = point;
  alone.ep_size = 1;
  alone.exchange_unit = ExchangeUnit::assignment;
  alone.placement = "contiguous";
  alone.redundant_slots = 0;
  alone.concurrency = {.mode = ConcurrencyMode::fixed_global,
                       .tokens = point.tokens_global(),
                       .tokens_per_rank = {}};
  LocalTransport local;
  RecordingBackend backend;
  run_layers(alone, 0, local, catalog_gemm(alone), backend);
  return backend.of_layer();
}

// Both units compute the same rows, so unit rank's result follows to the bit.
void expect_bits_of_assignment(SweepPoint point) {
  point.exchange_unit = ExchangeUnit::rank;
  const LayerOutputs wide = run_wide(point);
  const std::vector<AssignmentRows> rows = assignment_rows(point);
  const TokenRange own = wide.work.own_tokens();
  const auto cols = static_cast<std::size_t>(point.model.expert_io_dim);
  for (std::size_t layer = 0; layer < wide.of_layer.size(); ++layer) {
    for (std::int64_t token = own.begin; token < own.end; ++token) {
      std::vector<int> ranks;
      for (const std::int32_t expert : wide.work.traces[layer].of_token(token)) {
        ranks.push_back(wide.work.placements[layer].rank_of(expert, token));
      }
      const auto got = std::span(wide.of_layer[layer])
                           .subspan(static_cast<std::size_t>(token - own.begin) * cols, cols);
      ASSERT_EQ(std::vector<float>(got.begin(), got.end()),
                row_of_unit_rank(point, rows[layer], token, ranks))
          << point_label(point) << " layer " << layer << " token " << token;
    }
  }
}

SweepPoint wide_point(std::int64_t tokens) {
  SweepPoint point = layer_point(mpi_world().size(), tokens);
  point.model.top_k = 5;
  point.layers = 2;
  return point;
}

TEST(ExchangeUnit, RankHasTheBitsThatFollowFromAssignment) {
  for (const std::string& transport : moving_transports()) {
    for (const char* placement : {"contiguous", "random"}) {
      for (const DType dtype : {DType::fp32, DType::bf16}) {
        SweepPoint point = wide_point(37);
        point.transport = transport;
        point.placement = placement;
        point.dtype = dtype;
        expect_bits_of_assignment(point);
      }
    }
  }
}

TEST(ExchangeUnit, ReplicasAreNoException) {
  SweepPoint point = wide_point(61);
  point.dtype = DType::fp32;
  point.routing = {.distribution = "zipf", .params = {{"zipf_alpha", 1.2}}, .file = {}};
  point.placement = "eplb";
  const int ep_size = point.ep_size, num_experts = point.model.num_experts;
  const int least = (ep_size - num_experts % ep_size) % ep_size;
  for (const int redundant : {least, std::min(least + 2 * ep_size, num_experts * (ep_size - 1))}) {
    point.redundant_slots = redundant;
    expect_bits_of_assignment(point);
  }
}

// Everything to one rank, a rank without tokens, ranks without experts, one token, none.
TEST(ExchangeUnit, EdgesAreNoException) {
  const auto ranks = static_cast<std::size_t>(mpi_world().size());
  SweepPoint point = wide_point(0);
  point.model.top_k = 3;
  point.routing = {
      .distribution = "k_hot", .params = {{"num_hot", 3}, {"hot_fraction", 1.0}}, .file = {}};
  point.concurrency.mode = ConcurrencyMode::listed;
  point.concurrency.tokens_per_rank.assign(ranks, 5);
  point.concurrency.tokens_per_rank.back() = 0;
  expect_bits_of_assignment(point);
  point.concurrency.tokens_per_rank.assign(ranks, 0);
  expect_bits_of_assignment(point);
  point.concurrency.tokens_per_rank.back() = 1;
  expect_bits_of_assignment(point);
  point = wide_point(20);
  point.model.num_experts = 3;
  point.model.top_k = 2;
  point.allow_empty_ranks = true;
  expect_bits_of_assignment(point);
}

}  // namespace
}  // namespace epsweep
