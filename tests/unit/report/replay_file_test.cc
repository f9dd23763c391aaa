// Reading files of other tools' measurements: strictly, with the place of every mistake.
#include "report/replay_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/error.h"
#include "base/text.h"
#include "replay_sample.h"

namespace epsweep {
namespace {

using ::testing::AllOf;
using testing::durations;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::replay_json;
using testing::replay_point;
using testing::replay_rank;
using testing::spans;

Json good() {
  return replay_json({replay_point("p", {replay_rank(0, "dispatch", spans({0, 1}, {0.25, 1.5})),
                                         replay_rank(1, "dispatch", spans({0, 1}, {0.5, 1.25}))})});
}

std::string error_of(const std::string& text) {
  try {
    parse_replay(text, "x.json");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(ReplayFile, TimesClocksAndBytesAreRead) {
  Json json = good();
  Json& rank = json["points"][0]["ranks"][1];
  rank["clock"] = {{"offset_s", -0.005}, {"drift_ppm", 50}, {"at_s", 100}, {"bound_s", 1e-6}};
  rank["rows"] = 7;
  const ReplayFile file = parse_replay(to_json_line(json), "x.json");
  ASSERT_EQ(file.points.size(), 1U);
  const ReplayPoint& point = file.points[0];
  EXPECT_EQ(point.ep_size, 2);
  EXPECT_EQ(point.num_iterations(), 2U);
  EXPECT_THAT(point.stages, ElementsAre("dispatch"));
  EXPECT_THAT(point.ranks[0].stages.at("dispatch").duration_s, ElementsAre(0.25, 0.5));
  EXPECT_EQ(point.ranks[1].rows, 7);
  EXPECT_FALSE(point.ranks[0].rows.has_value());
  // 100 s after at_s, 50 ppm are 5 ms.
  EXPECT_NEAR(point.ranks[1].clock->common_s(200), 200.0, 1e-9);
}

TEST(ReplayFile, GroupsAreNumberedInTheOrderOfTheFile) {
  Json json = good();
  Json& point = json["points"][0];
  point["ep_size"] = 1;
  point["ranks"][0]["group"] = 2'000'000'000;
  point["ranks"][1]["group"] = 5;
  const ReplayFile file = parse_replay(to_json_line(json), "x.json");
  EXPECT_EQ(file.points[0].ranks[0].group, 0);
  EXPECT_EQ(file.points[0].ranks[1].group, 1);
}

TEST(ReplayFile, TheDocumentedFilesAreReadable) {
  const std::string page =
      read_text_file(std::string(EPSWEEP_SOURCE_DIR) + "/src/report/replay_format.md");
  const std::size_t begin = page.find("```json\n") + 8;
  const ReplayFile file = parse_replay(page.substr(begin, page.find("\n```", begin) - begin), "md");
  EXPECT_THAT(file.points[0].stages, ElementsAre("dispatch", "expert_ffn"));
  for (const std::string& stage : replay_stage_names()) EXPECT_THAT(page, HasSubstr("`" + stage));
}

struct Fault {
  const char* pointer;  // into the good file
  Json value;           // discarded: the key is taken away
  const char* message;
};

const Json kGone = Json(Json::value_t::discarded);

const std::vector<Fault> kFaults = {
    Fault{"/format", "other", "format: 'other' is not one of epsweep_replay"},
    Fault{"/format", kGone, "has no 'format'"},
    Fault{"/schema_version", "2.0", "schema_version: 2.0 is not readable, this build reads 1.x"},
    Fault{"/tool", kGone, "has no 'tool'"},
    Fault{"/tool", "", "tool: \"\" is not a text"},
    Fault{"/points", Json::array(), "points: the list is empty"},
    Fault{"/points/0/regim", "aligned",
          "points[0]: unknown key 'regim', nearest valid key: 'regime'"},
    Fault{"/points/0/regime", kGone, "points[0]: has no 'regime'"},
    Fault{"/points/0/regime", "alined", "points[0].regime: 'alined' is not one of aligned"},
    Fault{"/points/0/warmup", kGone, "points[0]: has no 'warmup'"},
    Fault{"/points/0/ep_size", 0, "points[0].ep_size: 0 is not an integer from 1"},
    Fault{"/points/0/ep_size", 1.5, "points[0].ep_size: 1.5 is not an integer"},
    Fault{"/points/0/ep_size", 4,
          "points[0].ranks: 2 entries of one group, 1 rank each, are not ep_size 4"},
    Fault{"/points/0/ranks_per_row", 2, "2 ranks each, are not ep_size 2"},
    Fault{"/points/0/ranks/1/rank", 0, "points[0].ranks[1].rank: rank 0 is there twice"},
    Fault{"/points/0/ranks/1/rank", -1, "points[0].ranks[1].rank: -1 is not an integer from 0"},
    Fault{"/points/0/ranks/1/group", 1, "points[0].ranks: 1 entries of one group"},
    Fault{"/points/0/ranks/1/stages", Json::object(),
          "points[0].ranks[1].stages: no stage has times"},
    Fault{"/points/0/ranks/1/stages/disptch", durations({1, 1}),
          "points[0].ranks[1].stages: unknown key 'disptch', nearest valid key: 'dispatch'"},
    Fault{"/points/0/ranks/1/stages/combine", durations({1, 1}),
          "points[0].ranks[1].stages: rank 1 has times of combine, dispatch, rank 0 of dispatch"},
    Fault{"/points/0/ranks/1/stages/dispatch", spans({0}, {1}),
          "points[0].ranks[1].stages.dispatch: 1 iterations, dispatch of rank 0 has 2"},
    Fault{"/points/0/ranks/1/stages/dispatch", durations({1, 1}),
          "points[0].ranks[1].stages.dispatch: durations of one rank and both ends of another"},
    Fault{"/points/0/ranks/1/stages/dispatch/end_s", Json::array({0.5}),
          "points[0].ranks[1].stages.dispatch: 2 values in begin_s, 1 in end_s"},
    Fault{"/points/0/ranks/1/stages/dispatch/end_s", Json::array({0.5, 0.75}),
          "points[0].ranks[1].stages.dispatch: iteration 1 (from 0) ends before it begins "
          "(-0.25 s)"},
    Fault{"/points/0/ranks/1/stages/dispatch/end_s", Json::array({0.5, "x"}),
          "points[0].ranks[1].stages.dispatch.end_s[1]: \"x\" is not a number"},
    Fault{"/points/0/ranks/1/stages/dispatch/end_s", Json::array({0.5, 1e300}),
          "points[0].ranks[1].stages.dispatch.end_s: iteration 1 (from 0): 1e+300 is too large"},
    Fault{"/points/0/ranks/1/stages/dispatch/end_s", Json::array(), "end_s: the list is empty"},
    Fault{"/points/0/ranks/1/stages/dispatch/end_s", kGone, "stages.dispatch: has no 'end_s'"},
    Fault{"/points/0/ranks/1/stages/dispatch/duration_s", Json::array({1, 1}),
          "stages.dispatch: has both duration_s and begin_s or end_s"},
    Fault{"/points/0/ranks/0/stages", Json{{"dispatch", durations({1, -2e-6})}},
          "stages.dispatch.duration_s: iteration 1 (from 0) lasts less than nothing (-2e-06 s)"},
    Fault{"/points/0/ranks/0/clock/bound_s", -1, "points[0].ranks[0].clock.bound_s: is negative"},
    Fault{"/points/0/ranks/0/clock/bound_s", kGone, "points[0].ranks[0].clock: has no 'bound_s'"},
    Fault{"/points/0/ranks/0/clock/drift_ppm", 1, "clock: has a drift_ppm and no 'at_s'"},
    Fault{"/points/0/ranks/0/bytes", Json{{"dispatch", {{"bytes", 1}, {"letter", "Z"}}}},
          "points[0].ranks[0].bytes.dispatch.letter: 'Z' is not one of A"},
    Fault{"/points/0/ranks/0/bytes", Json{{"combine", {{"bytes", 1}, {"letter", "A"}}}},
          "points[0].ranks[0].bytes.combine: a stage without times"},
    Fault{"/points/0/ranks/1/bytes", Json{{"dispatch", {{"bytes", 1}, {"letter", "A"}}}},
          "points[0].ranks[1].bytes.dispatch: bytes of letter A, rank 0 has none"},
    Fault{"/points/0/ranks/0/bytes", Json{{"dispatch", {{"bytes", 1}, {"letter", "A"}}}},
          "points[0].ranks[1]: no bytes of dispatch, which rank 0 has"},
    Fault{"/points/0/ranks/0/rows", -3, "points[0].ranks[0].rows: -3 is not an integer from 0"},
    Fault{"/points/0/check", "maybe", "points[0].check: 'maybe' is not one of passed"},
    Fault{"/points/0/expected_transport", "infiniband",
          "points[0].expected_transport: 'infiniband'"},
    Fault{"/points/0/expected_transport", Json{{"within_host", "shm"}},
          "points[0].expected_transport: has no 'between_hosts'"},
    Fault{"/points/0/transports", Json::array({{{"from", 0}, {"to", 9}, {"transport", "ib"}}}),
          "points[0].transports[0].to: there is no rank 9"},
    Fault{"/points/0/ranks", Json::array(), "points[0].ranks: the list is empty"}};

TEST(ReplayFile, EveryFaultIsRefusedWithFileAndPath) {
  for (const Fault& fault : kFaults) {
    Json json = good();
    const Json::json_pointer place(fault.pointer);
    if (fault.value.is_discarded()) {
      json[place.parent_pointer()].erase(place.back());
    } else {
      json[place] = fault.value;
    }
    EXPECT_THAT(error_of(to_json_line(json)),
                AllOf(HasSubstr("x.json: "), HasSubstr(fault.message)))
        << fault.pointer;
  }
}

TEST(ReplayFile, HostsMustBeKnownWhereALabelTellsThemApart) {
  Json json = good();
  json["points"][0]["expected_transport"] = {{"within_host", "shm"}, {"between_hosts", "ib"}};
  EXPECT_EQ(error_of(to_json_line(json)), "no error");
  json["points"][0]["ranks"][1].erase("host");
  EXPECT_THAT(error_of(to_json_line(json)), HasSubstr("rank 1 names no host"));
}

TEST(ReplayFile, ABareExchangeStandsAlone) {
  Json json = good();
  for (Json& rank : json["points"][0]["ranks"]) {
    rank["stages"]["exchange"] = durations({1, 1});
  }
  EXPECT_THAT(error_of(to_json_line(json)), HasSubstr("'exchange' is one bare exchange"));
  for (Json& rank : json["points"][0]["ranks"]) {
    rank["stages"].erase("dispatch");
    rank["stages"]["layer"] = durations({2, 2});
  }
  EXPECT_EQ(error_of(to_json_line(json)), "no error");
}

TEST(ReplayFile, TextThatIsNoJsonNamesTheLine) {
  EXPECT_THAT(error_of("{\n\"format\": }"), HasSubstr("x.json:2: not valid JSON"));
  EXPECT_THAT(error_of("[]"), HasSubstr("has no 'format'"));
  EXPECT_THAT(error_of("{\"format\": \"epsweep_replay\", \"format\": 1}"), HasSubstr("twice"));
}

}  // namespace
}  // namespace epsweep
