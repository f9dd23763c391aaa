// Points with one thing replaced, beside the points that they are of.
#include "report/counterfactuals.h"

#include <gmock/gmock.h>

#include "report/breakdown_json.h"
#include "report/ep_pairs.h"
#include "report/frontier_records.h"
#include "report/point_record.h"
#include "report/tables.h"
#include "sample_point.h"

namespace epsweep {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// A run whose layers take what is said.
class Counterfactuals : public ::testing::Test {
 protected:
  RunData run{.dir = "results/a", .run = {{"identity", "x"}}, .points = {}};

  // Repeats, of which exchanges take that many us together.
  void add(SweepPoint point, const std::vector<double>& layer_us, double exchange_us = 0) {
    for (const double us : layer_us) {
      point.index = static_cast<int>(run.points.size());
      PointRecordInput input = testing::measured_input(point);
      input.timings->chain =
          summarize_chain(testing::even_chains(point.ep_size, point.iterations, us * 1e-6));
      input.breakdown = Breakdown{.period_us = us, .parts_us = {}, .model = {}};
      input.breakdown->at(LayerPart::count_exchange) = 1;
      input.breakdown->at(LayerPart::dispatch) = exchange_us / 2;
      input.breakdown->at(LayerPart::combine) = exchange_us / 2 - 1;
      run.points.push_back(make_point_record(input));
      ++point.repeat;
    }
  }
  SweepPoint point_of(const std::string& transport, int ep_size = 4) {
    SweepPoint point = testing::sample_point(ep_size, 8);
    point.transport = transport;
    if (transport == "local_copy") point.load_from = LoadFrom::counterfactual;
    return point;
  }
  std::vector<TableRow> rows() const {
    std::vector<TableRow> all;
    for (const Json& record : run.points) all.push_back({&record, run.dir});
    return all;
  }
};

// Repeats in pairs: 80 - 100, 90 - 104, 70 - 102; the median of -20, -14, -32.
TEST_F(Counterfactuals, ALocalCopyStandsBesideEveryTransport) {
  add(point_of("pairwise"), {100, 104, 102}, 30);
  add(point_of("alltoallv"), {120, 121, 122}, 50);
  add(point_of("local_copy"), {80, 90, 70}, 6);
  const std::vector<Counterfactual> all = counterfactuals_of(rows());
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_EQ(all[0].replaced, Replaced::exchange);
  EXPECT_THAT(all[0].differences_us(),
              ElementsAre(::testing::DoubleNear(-20, 1e-6), ::testing::DoubleNear(-14, 1e-6),
                          ::testing::DoubleNear(-32, 1e-6)));
  ASSERT_TRUE(all[0].interval().has_value());
  EXPECT_NEAR(all[0].interval()->low, -32, 1e-6);
  EXPECT_NEAR(all[0].interval()->high, -14, 1e-6);
  EXPECT_THAT(all[0].point_exchange_us, ElementsAre(30, 30, 30));
  EXPECT_THAT(all[0].instead_exchange_us, ElementsAre(6, 6, 6));
  EXPECT_EQ(all[1].point->at("point")["transport"], "alltoallv");
  EXPECT_NEAR(all[1].differences_us()[0], -40, 1e-6);
}

TEST_F(Counterfactuals, AreToldInTextAndJson) {
  add(point_of("pairwise"), {100, 100, 100, 100}, 30);
  add(point_of("pairwise", 8), {90}, 40);
  add(point_of("local_copy"), {80, 81, 82, 83}, 6);
  add(point_of("local_copy", 8), {60}, 8);
  EXPECT_THAT(
      counterfactuals_text(rows()),
      AllOf(HasSubstr("\nEP4 fixed_global 8  exchange pairwise  local_copy  100.0  81.0  -19.0 "
                      "[-20.0, -17.0]  30.0 -> 6.00\n"),
            HasSubstr("\nEP8 fixed_global 8  exchange pairwise  local_copy   90.0  60.0  -30.0     "
                      "            40.0 -> 8.00                 more repeats are needed\n")));
  const Json json = counterfactuals_json(run.points);
  ASSERT_EQ(json.size(), 2U);
  EXPECT_EQ(json[0]["ep_size"], 4);
  EXPECT_EQ(json[0]["replaced"], "exchange");
  EXPECT_EQ(json[0]["value"], "pairwise");
  EXPECT_EQ(json[0]["by"], "local_copy");
  EXPECT_EQ(json[0]["num_repeats"], 4);
  EXPECT_EQ(json[0]["shown"], "faster");
  EXPECT_NEAR(json[0]["difference_us"].get<double>(), -19, 1e-6);
  EXPECT_NEAR(json[0]["difference_interval_us"][0].get<double>(), -20, 1e-6);
  EXPECT_EQ(json[0]["exchange_transfer_us"], 30);
  EXPECT_EQ(json[0]["by_exchange_transfer_us"], 6);
  EXPECT_TRUE(json[1]["difference_interval_us"].is_null());
  EXPECT_EQ(json[1]["shown"], "too_few");
}

TEST_F(Counterfactuals, RoutingAndPlacementAreTheOtherTwo) {
  SweepPoint point = point_of("pairwise");
  point.placement = "eplb";
  point.redundant_slots = 4;
  add(point, {100});
  SweepPoint changed = point;
  changed.load_from = LoadFrom::counterfactual;
  changed.routing.distribution = "balanced";
  add(changed, {70});
  changed = point;
  changed.load_from = LoadFrom::counterfactual;
  changed.placement = "contiguous";
  changed.redundant_slots = 0;
  add(changed, {130});
  const std::vector<Counterfactual> all = counterfactuals_of(rows());
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_EQ(all[0].replaced, Replaced::routing);
  EXPECT_EQ(all[1].replaced, Replaced::placement);
  EXPECT_THAT(all[0].point_exchange_us, IsEmpty());
  EXPECT_THAT(counterfactuals_text(rows()),
              AllOf(HasSubstr("routing uniform  balanced    100.0   70.0  -30.0"),
                    HasSubstr("placement eplb   contiguous  100.0  130.0  +30.0")));
}

// Another load, repeat, kernel or run, a point without times, and what was asked for.
TEST_F(Counterfactuals, NothingElseMayDiffer) {
  add(point_of("pairwise"), {100});
  SweepPoint copied = point_of("local_copy");
  copied.repeat = 1;
  add(copied, {80});
  copied.repeat = 0;
  copied.grouped_gemm = "other";
  add(copied, {80});
  copied = point_of("local_copy");
  copied.concurrency.tokens = 16;
  add(copied, {80});
  copied = point_of("local_copy");
  copied.attempt = 2;
  add(copied, {80});
  SweepPoint again = point_of("pairwise");
  again.attempt = 2;
  add(again, {100});
  add(point_of("local_copy"), {80});
  run.points.back()["state"] = "failed";
  SweepPoint balanced = point_of("pairwise");
  balanced.routing.distribution = "balanced";
  add(balanced, {70});
  EXPECT_THAT(counterfactuals_of(rows()), IsEmpty());
  EXPECT_EQ(counterfactuals_text(rows()), "");
  EXPECT_EQ(counterfactuals_json(run.points), Json::array());
  add(point_of("local_copy"), {80});
  std::vector<TableRow> elsewhere = rows();
  elsewhere.back().dir = "results/b";
  EXPECT_THAT(counterfactuals_of(elsewhere), IsEmpty());
  EXPECT_THAT(counterfactuals_of(rows()), SizeIs(1));
}

TEST_F(Counterfactuals, OneThatWasAskedForIsOneToo) {
  add(point_of("pairwise"), {100});
  SweepPoint asked = point_of("local_copy");
  asked.load_from = LoadFrom::ladder;
  add(asked, {80});
  EXPECT_THAT(counterfactuals_of(rows()), SizeIs(1));
}

// The copy would win everything if it were let.
TEST_F(Counterfactuals, ALocalCopyCompetesWithNothing) {
  for (const int ep_size : {2, 4}) {
    add(point_of("pairwise", ep_size), {100, 100, 100, 100});
    add(point_of("alltoallv", ep_size), {110, 110, 110, 110});
    add(point_of("local_copy", ep_size), {10, 10, 10, 10});
  }
  const std::string text = report_text({run});
  EXPECT_THAT(text, HasSubstr("L a local copy of the same rows instead of the exchange"));
  EXPECT_THAT(text, HasSubstr("\nL   2          8"));
  const std::size_t exchanges = text.find("\nExchanges\n");
  ASSERT_NE(exchanges, std::string::npos);
  const std::size_t counterfactuals = text.find("\nCounterfactuals ");
  ASSERT_NE(counterfactuals, std::string::npos);
  EXPECT_THAT(text.substr(exchanges, counterfactuals - exchanges), Not(HasSubstr("local_copy")));
  EXPECT_THAT(text.substr(0, text.find("\nExchanges\n")).substr(text.find("\nRepeats ")),
              Not(HasSubstr("local_copy")));
  for (const EpPair& pair : ep_pairs(run.points)) {
    EXPECT_THAT(pair.held, Not(HasSubstr("local_copy")));
    EXPECT_THAT(pair.a.records, SizeIs(4));
  }
  EXPECT_THAT(ep_pairs(run.points), SizeIs(2));
}

// Nor does anything that nobody asked for have a frontier.
TEST_F(Counterfactuals, HaveNoFrontier) {
  SweepPoint point = point_of("pairwise");
  point.limits = Limits{};
  add(point, {100});
  EXPECT_THAT(frontiers_of(rows()), SizeIs(1));
  point.load_from = LoadFrom::counterfactual;
  point.routing.distribution = "balanced";
  add(point, {90});
  point = point_of("local_copy");
  point.load_from = LoadFrom::ladder;
  point.limits = Limits{};
  add(point, {80});
  EXPECT_THAT(frontiers_of(rows()), SizeIs(1));
}

}  // namespace
}  // namespace epsweep
