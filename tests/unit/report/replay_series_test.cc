// Files side by side.
#include "report/replay_series.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "replay_sample.h"
#include "report/replay_text.h"

namespace epsweep {
namespace {

using ::testing::AllOf;
using testing::durations;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::replay_file;
using testing::replay_point;
using testing::replay_rank;

Json repeat_of(int ep_size, int repeat, double us, const std::string& regime = "chained") {
  std::vector<Json> ranks;
  for (int r = 0; r < ep_size; ++r) {
    ranks.push_back(replay_rank(r, "layer", durations({us * 1e-6, us * 1e-6, us * 1e-6})));
  }
  Json point = replay_point("decode", ranks, regime);
  point["repeat"] = repeat;
  return point;
}

std::vector<Json> records_of(const ReplayFile& file) {
  std::vector<Json> records;
  for (const ReplayPoint& point : file.points) records.push_back(make_replay_record(file, point));
  return records;
}

std::string error_of(const std::vector<ReplayFile>& files) {
  try {
    expect_comparable(files);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(ReplaySeries, CaseC33ATieShowsNoDifference) {
  std::vector<Json> points;
  for (const auto& [ep_size, times] :
       {std::tuple{8, std::vector<double>{100, 101, 99}}, {32, {98, 104, 100}}}) {
    for (const double us : times) {
      points.push_back(repeat_of(ep_size, static_cast<int>(points.size()), us));
    }
  }
  const ReplayFile file = replay_file(points);
  EXPECT_EQ(error_of({file}), "no error");
  EXPECT_THAT(replay_verdicts(records_of(file)),
              ElementsAre(AllOf(HasSubstr("decode: EP32 against EP8: no difference shown"),
                                HasSubstr("98.0-104.0"), HasSubstr("99.0-101.0"))));
}

TEST(ReplaySeries, WithoutRepeatsThereIsNoVerdict) {
  const ReplayFile file = replay_file({repeat_of(2, 0, 100), repeat_of(4, 0, 50)});
  EXPECT_THAT(replay_verdicts(records_of(file)), IsEmpty());
}

TEST(ReplaySeries, PointsOfAnotherLoadAreNotCompared) {
  std::vector<Json> points = {repeat_of(2, 0, 100), repeat_of(2, 1, 100), repeat_of(4, 0, 50)};
  points[2]["tokens_global"] = 64;
  EXPECT_THAT(replay_verdicts(records_of(replay_file(points))), IsEmpty());
}

TEST(ReplaySeries, CaseC37RegimesAreNotPutSideBySide) {
  const ReplayFile idle = replay_file({repeat_of(2, 0, 100, "aligned")}, "idle.json");
  const ReplayFile back = replay_file({repeat_of(2, 0, 80, "chained")}, "back.json");
  EXPECT_EQ(error_of({idle, back}),
            "back.json: points[0].regime: 'decode' is chained here and aligned in idle.json: "
            "points[0]: times of different regimes are not comparable");
  const ReplayFile unknown = replay_file({repeat_of(2, 0, 80, "unknown")}, "unknown.json");
  EXPECT_THAT(error_of({idle, unknown}), HasSubstr("points[0].regime:"));
  EXPECT_EQ(error_of({idle}), "no error");
}

TEST(ReplaySeries, TheSameRepeatTwiceIsRefused) {
  const ReplayFile file = replay_file({repeat_of(2, 1, 100)}, "a.json");
  EXPECT_EQ(error_of({file, file}),
            "a.json: points[0].repeat: repeat 1 of this point is in a.json: points[0] already");
}

TEST(ReplayText, NamesRegimeWarmUpFailuresAndNulls) {
  Json failed = repeat_of(2, 0, 100);
  failed["check"] = "failed";
  Json slow = replay_point("tail", {replay_rank(0, "dispatch", durations({1e-6})),
                                    replay_rank(1, "dispatch", durations({3e-6}))});
  slow["warmup"] = nullptr;
  slow["notes"] = {"read off a plot"};
  const ReplayFile file = replay_file({failed, slow});
  const std::string text = replay_text(file, records_of(file));
  EXPECT_THAT(text, AllOf(HasSubstr("2 points: 1 measured, 1 failed"),
                          HasSubstr("FAILED: the tool's own check"),
                          HasSubstr("after an unknown number of warm-up"),
                          HasSubstr("regime aligned"), HasSubstr("note: read off a plot")));
  EXPECT_THAT(text, HasSubstr("null: stages.dispatch.exchange: durations only"));
  EXPECT_THAT(text, HasSubstr("dispatch    3.00  1 (100%)  1.00  100.0"));
}

}  // namespace
}  // namespace epsweep
