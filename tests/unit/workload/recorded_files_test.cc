#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/text.h"
#include "sample_points.h"
#include "workload/trace.h"

namespace epsweep {
namespace {

// What drawing layer `layer` says about a file; empty if it is accepted.
std::string verdict(const std::string& distribution, const std::string& path, int num_experts,
                    int top_k, std::int64_t tokens, int layer = 0) {
  SweepPoint point = sample_point(distribution, num_experts, top_k, tokens);
  point.routing.file = path;
  return config_error([&] { draw_trace(point, layer); });
}

void expect_message(const std::string& message, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(message.find(part), std::string::npos) << "'" << part << "' is not in: " << message;
  }
}

TEST(RecordedCounts, zero_rows_are_dense_layers) {
  const std::string path = write_file(
      "counts_dense.json", R"({"logical_count": [[0,0,0,0],[3,0,1.5,0],[0,0,0,0],[0,2,0,0]]})");
  SweepPoint point = sample_point("recorded_counts", 4, 1, 3000);
  point.routing.file = path;
  const std::vector<std::int64_t> first = rows_per_expert(draw_trace(point, 0));
  EXPECT_NEAR(static_cast<double>(first[0]), 2000, 150);
  EXPECT_EQ(first[0] + first[2], 3000);
  EXPECT_EQ(rows_per_expert(draw_trace(point, 1)), (std::vector<std::int64_t>{0, 3000, 0, 0}));
  expect_message(verdict("recorded_counts", path, 4, 1, 10, 2),
                 {path, "2 rows that are not all zero", "layer 2 of the sweep needs 3"});
}

TEST(RecordedCounts, bad_files_are_named_by_row_and_column) {
  struct Case {
    std::string text;
    std::vector<std::string> expected;
  };
  const std::vector<Case> cases = {
      {R"({"logical_count": [[1,2],[1,-3]]})", {"row 1, column 1", "-3 is negative"}},
      {R"({"logical_count": [[1,"x"],[1,3]]})", {"row 0, column 1", "\"x\" is not a number"}},
      {R"({"logical_count": [[1,null]]})", {"row 0, column 1", "null is not a number"}},
      {R"({"logical_count": [[1,1e300]]})", {"row 0, column 1", "1e+300 is too large"}},
      {R"({"logical_count": [[1,2],[1,3,4]]})", {"row 1", "3 columns", "have 2"}},
      {R"({"logical_count": [[1,2],[]]})", {"row 1"}},
      {R"({"logical_count": [[1,2],7]})", {"row 1", "is not a list"}},
      {R"({"logical_count": []})", {"logical_count"}},
      {R"({"count": [[1,2]]})", {"logical_count"}},
      {R"([[1,2]])", {"logical_count"}},
      {"", {"not valid JSON"}},
      {"{\n\"logical_count\": [[1,\n}", {":3", "not valid JSON"}},
      {R"({"logical_count": [[1,2,3]]})", {"counts of 3 experts", "the model has 2"}},
      {R"({"logical_count": [[0,0]]})", {"0 rows that are not all zero", "needs 1"}},
  };
  int number = 0;
  for (const Case& bad : cases) {
    const std::string path = write_file(fmt::format("counts_bad_{}.json", number++), bad.text);
    const std::string message = verdict("recorded_counts", path, 2, 1, 10);
    expect_message(message, bad.expected);
    expect_message(message, {path});
  }
}

TEST(RecordedCounts, too_few_loaded_experts_for_top_k) {
  const std::string path = write_file("counts_few.json", R"({"logical_count": [[1,2,0,0]]})");
  expect_message(verdict("recorded_counts", path, 4, 3, 10), {path, "top_k 3", "2 of 4"});
  EXPECT_EQ(verdict("recorded_counts", path, 4, 2, 10), "");
  expect_message(verdict("recorded_counts", path + ".missing", 4, 2, 10), {"cannot be read"});
}

TEST(RecordedTrace, replays_tokens_of_each_layer_in_file_order) {
  const std::string path = write_file("trace_good.jsonl",
                                      "{\"meta\": {\"model\": \"x\"}}\n"
                                      "{\"type\": \"meta\", \"layer\": 9}\n"
                                      "{\"layer\": 0, \"token\": 0, \"experts\": [3, 1]}\n"
                                      "{\"layer\": 2, \"topk_ids\": [0, 2]}\r\n"
                                      "\n"
                                      "{\"experts\": [2, 3]}\n"
                                      "{\"type\": \"meta\", \"layer\": 2, \"experts\": [1, 0]}");
  SweepPoint point = sample_point("recorded_trace", 4, 2, 2);
  point.routing.file = path;
  EXPECT_EQ(draw_trace(point, 0).experts, (std::vector<std::int32_t>{3, 1, 2, 3}));
  EXPECT_EQ(draw_trace(point, 2).experts, (std::vector<std::int32_t>{0, 2, 1, 0}));
  expect_message(verdict("recorded_trace", path, 4, 2, 3), {path, "has 2 tokens", "needs 3"});
  expect_message(verdict("recorded_trace", path, 4, 2, 1, 1), {path, "layer 1 has 0 tokens"});
  point.concurrency.tokens = 1;
  point.step = 1;
  EXPECT_EQ(draw_trace(point, 0).experts, (std::vector<std::int32_t>{2, 3}));
  point.step = 2;
  EXPECT_THROW(draw_trace(point, 0), ConfigError);
}

// C17. Nothing is clamped, wrapped or skipped.
TEST(RecordedTrace, bad_files_are_named_by_line_and_value) {
  const std::string good = "{\"layer\": 0, \"experts\": [0, 63]}\n";
  struct Case {
    std::string text;
    std::vector<std::string> expected;
  };
  const std::vector<Case> cases = {
      {good + good + good + good + "{\"experts\": [1, 64]}\n", {":5:", "expert 64", "0..63"}},
      {good + "{\"experts\": [3, 3]}\n", {":2:", "expert 3 appears twice", "[3,3]"}},
      {good + good + "{\"experts\": [7]}\n", {":3:", "1 experts in [7]", "top_k is 2"}},
      {good + "{\"experts\": [7, 8, 9]}\n", {":2:", "3 experts in [7,8,9]", "top_k is 2"}},
      {good + "{\"experts\": [-1, 2]}\n", {":2:", "expert -1"}},
      {good + "{\"experts\": [4294967296, 2]}\n", {":2:", "expert 4294967296"}},
      {good + "{\"experts\": [18446744073709551615, 2]}\n", {":2:", "18446744073709551615"}},
      {good + "{\"experts\": [1.5, 2]}\n", {":2:", "expert 1.5 is not a whole number"}},
      {good + "{\"experts\": [\"1\", 2]}\n", {":2:", "expert \"1\" is not a whole number"}},
      {good + "{\"experts\": 5}\n", {":2:", "experts is not a list"}},
      {good + "{\"layer\": -1, \"experts\": [1, 2]}\n", {":2:", "layer -1"}},
      {good + "{\"layer\": 0}\n", {":2:", "has no experts"}},
      {good + "{\"experts\": [1, 2], \"topk_ids\": [1, 2]}\n", {":2:", "both"}},
      {good + "[1, 2]\n", {":2:", "expected an object"}},
      {good + "{\"experts\": [1, 2\n", {":2:", "not valid JSON"}},
      {"", {"holds no token"}},
      {"\n{\"meta\": 1}\n", {"holds no token"}},
  };
  int number = 0;
  for (const Case& bad : cases) {
    const std::string path = write_file(fmt::format("trace_bad_{}.jsonl", number++), bad.text);
    const std::string message = verdict("recorded_trace", path, 64, 2, 1);
    expect_message(message, bad.expected);
    expect_message(message, {path});
  }
}

TEST(RecordedTrace, is_checked_again_for_another_model) {
  const std::string path = write_file("trace_models.jsonl", "{\"experts\": [0, 63]}\n");
  EXPECT_EQ(verdict("recorded_trace", path, 64, 2, 1), "");
  expect_message(verdict("recorded_trace", path, 32, 2, 1), {":1:", "expert 63", "0..31"});
}

// The recipe that configs/routing/README.md states.
TEST(ShippedRoutingFiles, follow_their_recipe) {
  SweepPoint counts = sample_point("recorded_counts", 64, 8, 64);
  SweepPoint trace = sample_point("recorded_trace", 64, 8, 64);
  const Json file = parse_json(read_text_file(kRoutingDir + "olmoe_like_counts.json"), "counts");
  for (int layer = 0; layer < 2; ++layer) {
    const SweepPoint source = sample_point("lognormal_blocks", 64, 8, 4096);
    EXPECT_EQ(
        file["logical_count"][static_cast<std::size_t>(layer)].get<std::vector<std::int64_t>>(),
        rows_per_expert(draw_trace(source, layer)));
    EXPECT_EQ(draw_trace(trace, layer).experts, draw_trace(counts, layer).experts);
  }
}

TEST(RecordedTrace, LinesOutOfTokenOrderAreRefused) {
  SweepPoint point = sample_point("uniform", 8, 2, 2);
  point.routing.distribution = "recorded_trace";
  point.routing.file = write_file("order.jsonl",
                                  "{\"token\": 1, \"experts\": [0, 1]}\n"
                                  "{\"token\": 0, \"experts\": [2, 3]}\n");
  EXPECT_NE(
      config_error([&] { draw_trace(point, 0); }).find("order.jsonl:1: token 1 where token 0"),
      std::string::npos);
  point.routing.file = write_file("in_order.jsonl",
                                  "{\"token\": 0, \"experts\": [0, 1]}\n"
                                  "{\"token\": 1, \"experts\": [2, 3]}\n");
  EXPECT_EQ(config_error([&] { draw_trace(point, 0); }), "");
}

}  // namespace
}  // namespace epsweep
