// Small replay files, for the tests of their reader and of what is computed from them.
#pragma once

#include <string>
#include <vector>

#include "report/replay_file.h"
#include "report/replay_record.h"

namespace epsweep::testing {

inline Json spans(std::vector<double> begin_s, std::vector<double> end_s) {
  return {{"begin_s", std::move(begin_s)}, {"end_s", std::move(end_s)}};
}
inline Json durations(std::vector<double> values) {
  return {{"duration_s", std::move(values)}};
}
inline Json same_clock() {
  return {{"offset_s", 0}, {"bound_s", 0}};
}

// One rank of group 0 with one stage, on host "a" and the common clock.
inline Json replay_rank(int rank, const std::string& stage, Json times) {
  return {{"rank", rank},
          {"group", 0},
          {"host", "a"},
          {"clock", same_clock()},
          {"stages", {{stage, std::move(times)}}}};
}

// Of one group that all ranks are in.
inline Json replay_point(const std::string& name, std::vector<Json> ranks,
                         const std::string& regime = "aligned") {
  return {{"name", name},
          {"ep_size", ranks.size()},
          {"regime", regime},
          {"warmup", 2},
          {"ranks", std::move(ranks)}};
}

inline Json replay_json(std::vector<Json> points) {
  return {{"format", "epsweep_replay"},
          {"schema_version", "1.0"},
          {"tool", "my_bench 1.2"},
          {"points", std::move(points)}};
}

inline ReplayFile replay_file(std::vector<Json> points, const std::string& path = "x.json") {
  return parse_replay(to_json_line(replay_json(std::move(points))), path);
}

// The record of a file's only point.
inline Json replay_record(const Json& point) {
  const ReplayFile file = replay_file({point});
  return make_replay_record(file, file.points.front());
}

}  // namespace epsweep::testing
