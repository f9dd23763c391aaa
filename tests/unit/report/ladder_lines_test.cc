#include "report/ladder_lines.h"

#include <gtest/gtest.h>

#include "report/point_record.h"
#include "report/tables.h"
#include "sample_point.h"

namespace epsweep::testing {
namespace {

SweepPoint limited_point(int ep_size, std::int64_t tokens, int index) {
  SweepPoint point = sample_point(ep_size, tokens);
  point.index = index;
  point.latency_objective_us = 500;
  return point;
}

PointRecordInput stopped_input(const SweepPoint& point, const LadderStop& stop,
                               const std::string& reason) {
  PointRecordInput input = skipped_input(point, reason);
  input.state = PointState::stopped;
  input.ladder_stop = stop;
  return input;
}

std::string report_of(const std::vector<Json>& records) {
  return report_text({{.dir = "results/a", .run = Json::object(), .points = records}});
}

TEST(LadderLines, OneLineForEverySeries) {
  const LadderStop stop{.kind = StopKind::kv_memory, .at_tokens = 16, .reason = "1.00 GiB short"};
  const std::string text = report_of(
      {make_point_record(measured_input(limited_point(2, 8, 0))),
       make_point_record(stopped_input(limited_point(2, 16, 1), stop, "kv_memory: 1.00 GiB short")),
       make_point_record(stopped_input(limited_point(2, 32, 2), stop, stop.beyond())),
       make_point_record(measured_input(limited_point(4, 8, 3))),
       make_point_record(measured_input(limited_point(4, 16, 4))),
       make_point_record(skipped_input(limited_point(8, 8, 5), "8 ranks need more"))});
  const std::string kernel = sample_point(2, 8).transport + " " + sample_point(2, 8).grouped_gemm;
  EXPECT_NE(text.find("\nLadders\n  EP2 " + kernel +
                      ": stopped at 16 tokens by kv_memory: 1.00 GiB short\n  EP4 " + kernel +
                      ": reached the end of the ladder at 16 tokens\n  EP8 " + kernel +
                      ": no load can run\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("32 tok/group: stopped: beyond 16 tokens: kv_memory stopped the series"),
            std::string::npos)
      << text;
}

TEST(LadderLines, ALatencyStopKeepsTheMeasuredLoad) {
  PointRecordInput slow = measured_input(limited_point(2, 8, 0));
  slow.ladder_stop = LadderStop{
      .kind = StopKind::latency_objective, .at_tokens = 8, .reason = "layer p50 too long"};
  const Json record = make_point_record(slow);
  EXPECT_EQ(record["state"], "measured");
  EXPECT_EQ(record["ladder_stop"]["kind"], "latency_objective");
  EXPECT_NE(report_of({record}).find("stopped at 8 tokens by latency_objective"),
            std::string::npos);
}

TEST(LadderLines, ASignalIsNotTheEndOfALadder) {
  PointRecordInput cut = skipped_input(limited_point(2, 16, 1), "signal 15 ended the sweep");
  cut.state = PointState::stopped;
  const std::string text = report_of(
      {make_point_record(measured_input(limited_point(2, 8, 0))), make_point_record(cut)});
  EXPECT_NE(text.find("not finished: signal 15"), std::string::npos) << text;
}

TEST(LadderLines, NothingIsSaidWhereNothingLimits) {
  const std::string text = report_of({make_point_record(measured_input(sample_point(2, 8)))});
  EXPECT_EQ(text.find("Ladders"), std::string::npos);
}

TEST(Record, ServingMemoryIsNullWithoutServing) {
  EXPECT_TRUE(make_point_record(measured_input(sample_point(2, 8)))["serving_memory"].is_null());
  SweepPoint point = sample_point(2, 8);
  point.hardware = HardwareShape{};
  point.hardware->memory_bytes = 1'000'000;
  point.serving = Serving{};
  const Json memory = make_point_record(measured_input(point))["serving_memory"];
  EXPECT_EQ(memory["usable_bytes"], 900'000);
  EXPECT_TRUE(memory["kv"]["room_bytes"].is_null());  // the model states no total_params
  EXPECT_TRUE(memory["max_tokens_per_step"].is_null());
  EXPECT_TRUE(memory["unknown"].is_string());
}

}  // namespace
}  // namespace epsweep::testing
