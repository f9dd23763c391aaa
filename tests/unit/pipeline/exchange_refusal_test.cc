#include "pipeline/exchange_refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/transport.h"
#include "support/layer_fixture.h"

namespace epsweep {
namespace {

using testing::HasSubstr;

const bool kFixedAdded = TransportCatalog::instance().add(
    {.name = "test_fixed", .backend = "test", .summary = "", .capacity = Capacity::fixed});
const bool kOldAdded = TransportCatalog::instance().add(
    {.name = "test_old",
     .backend = "test",
     .summary = "",
     .capacity = Capacity::fixed,
     .refuses = []() -> std::optional<std::string> { return "library too old"; }});

const BackendInfo kGraphs = {.name = "test",
                             .device = "",
                             .device_id = "",
                             .dtypes = {},
                             .launches = {Launch::direct, Launch::graph}};
const BackendInfo kNoGraphs = {.name = "cpu", .device = "", .device_id = "", .dtypes = {}};

std::string refusal(const SweepPoint& point, const BackendInfo& backend) {
  return exchange_refusal(plan_rank_work(point, 0), backend).value_or("");
}

TEST(ExchangeRefusal, what_goes_together_runs) {
  SweepPoint point = layer_point(4);
  EXPECT_EQ(refusal(point, kNoGraphs), "");
  point.exchange_unit = ExchangeUnit::rank;
  EXPECT_EQ(refusal(point, kNoGraphs), "");
  point.exchange_unit = ExchangeUnit::assignment;
  point.transport = "test_fixed";
  EXPECT_EQ(refusal(point, kNoGraphs), "");
  point.launch = Launch::graph;
  EXPECT_EQ(refusal(point, kGraphs), "");
}

TEST(ExchangeRefusal, graphs_want_a_backend_and_a_transport_that_never_asks_the_host) {
  SweepPoint point = layer_point(4);
  point.launch = Launch::graph;
  EXPECT_EQ(refusal(point, kNoGraphs),
            "launch graph: backend cpu has no graphs to capture a layer into");
  EXPECT_THAT(refusal(point, kGraphs),
              HasSubstr("launch graph: the host waits for row counts in every layer of transport "
                        "pairwise"));
}

TEST(ExchangeRefusal, fixed_capacity_wants_unit_assignment_and_room) {
  SweepPoint point = layer_point(4);
  point.transport = "test_fixed";
  point.exchange_unit = ExchangeUnit::rank;
  EXPECT_THAT(refusal(point, kGraphs), HasSubstr("transport test_fixed: of exchange unit rank"));
  point.exchange_unit = ExchangeUnit::assignment;
  point.capacity_factor = 1;
  EXPECT_THAT(refusal(point, kGraphs),
              HasSubstr("transport test_fixed: capacity_factor 1 gives every pair of ranks"));
  // Of exact capacity nobody reserves anything.
  point.transport = "pairwise";
  EXPECT_EQ(refusal(point, kGraphs), "");
}

TEST(ExchangeRefusal, libraries_refuse_by_name) {
  SweepPoint point = layer_point(4);
  point.transport = "test_old";
  EXPECT_EQ(refusal(point, kGraphs), "transport test_old: library too old");
}

// One rank, sections instead of rows without gaps: the same bits come out.
TEST(FixedCapacity, gives_the_same_rows_as_exact_capacity) {
  SweepPoint point = layer_point(1);
  point.layers = 2;
  LocalTransport local;
  const LayerOutputs exact = run_layers(point, 0, local, catalog_gemm(point));
  point.transport = "test_fixed";
  const LayerOutputs fixed = run_layers(point, 0, local, catalog_gemm(point));
  EXPECT_EQ(fixed.work.capacity_rows, 24 * 3);
  EXPECT_TRUE(fixed.counts_match);
  EXPECT_EQ(fixed.of_layer, exact.of_layer);
}

}  // namespace
}  // namespace epsweep
