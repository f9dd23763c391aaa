#include "report/replay_file.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "base/stage.h"
#include "report/arrival.h"
#include "report/json_at.h"
#include "report/times_json.h"

namespace epsweep {
namespace {

const std::vector<std::string> kLetters = {"A",        "A_remote", "B", "B_remote", "C",
                                           "C_remote", "D",        "E", "unknown"};
const std::vector<std::string> kRegimes = {kAligned, kChained, "unknown"};

// More than 3,000 years of seconds: surely another unit.
constexpr double kMostSeconds = 1e11;
constexpr double kMostDriftPpm = 1e5;

double read_seconds(const JsonAt& at) {
  const double value = at.number();
  if (std::abs(value) > kMostSeconds) at.refuse(fmt::format("{} is too large, in seconds", value));
  return value;
}

std::vector<double> read_all_seconds(const JsonAt& at) {
  std::vector<double> values = at.numbers();
  const auto large =
      std::ranges::find_if(values, [](double value) { return std::abs(value) > kMostSeconds; });
  if (large != values.end()) {
    at.refuse(fmt::format("iteration {} (from 0): {} is too large, in seconds",
                          large - values.begin(), *large));
  }
  return values;
}

ReplayClock read_clock(const JsonAt& at) {
  at.expect_keys({"offset_s", "bound_s"}, {"drift_ppm", "at_s"});
  ReplayClock clock{.offset_s = read_seconds(at.at("offset_s")),
                    .drift_ppm = at.has("drift_ppm") ? at.at("drift_ppm").number() : 0,
                    .at_s = at.has("at_s") ? read_seconds(at.at("at_s")) : 0,
                    .bound_s = read_seconds(at.at("bound_s"))};
  if (clock.bound_s < 0) at.at("bound_s").refuse("is negative");
  if (std::abs(clock.drift_ppm) > kMostDriftPpm) {
    at.at("drift_ppm").refuse(fmt::format("{} ppm is no drift of a clock", clock.drift_ppm));
  }
  // A drift counted from the wrong moment moves every time of a host that has been up for weeks.
  if (clock.drift_ppm != 0 && !at.has("at_s")) {
    at.refuse("has a drift_ppm and no 'at_s', the own time at which offset_s holds");
  }
  return clock;
}

void expect_not_negative(const JsonAt& at, const std::vector<double>& values,
                         const std::string& what) {
  const auto bad = std::ranges::find_if(values, [](double value) { return value < 0; });
  if (bad == values.end()) return;
  at.refuse(fmt::format("iteration {} (from 0) {} ({} s)", bad - values.begin(), what, *bad));
}

ReplayTimes read_times(const JsonAt& at) {
  ReplayTimes times;
  at.expect_keys({}, {"begin_s", "end_s", "duration_s"});
  if (at.has("duration_s")) {
    if (at.has("begin_s") || at.has("end_s")) {
      at.refuse("has both duration_s and begin_s or end_s: either durations, or both ends");
    }
    times.duration_s = read_all_seconds(at.at("duration_s"));
    expect_not_negative(at.at("duration_s"), times.duration_s, "lasts less than nothing");
    return times;
  }
  times.begin_s = read_all_seconds(at.at("begin_s"));
  times.end_s = read_all_seconds(at.at("end_s"));
  if (times.begin_s.size() != times.end_s.size()) {
    at.refuse(
        fmt::format("{} values in begin_s, {} in end_s", times.begin_s.size(), times.end_s.size()));
  }
  for (std::size_t i = 0; i < times.begin_s.size(); ++i) {
    times.duration_s.push_back(times.end_s[i] - times.begin_s[i]);
  }
  expect_not_negative(at, times.duration_s, "ends before it begins");
  return times;
}

ReplayRank read_rank(const JsonAt& at) {
  at.expect_keys({"rank", "group", "stages"}, {"host", "clock", "rows", "bytes"});
  ReplayRank rank;
  rank.rank = at.at("rank").small_count();
  rank.group = at.at("group").small_count();
  if (at.has("host")) rank.host = at.at("host").text();
  if (at.has("clock")) rank.clock = read_clock(at.at("clock"));
  if (at.has("rows")) rank.rows = at.at("rows").count();
  const JsonAt stages = at.at("stages");
  stages.expect_keys({}, replay_stage_names());
  for (const std::string& stage : stages.keys()) {
    rank.stages[stage] = read_times(stages.at(stage));
  }
  if (rank.stages.empty()) stages.refuse("no stage has times");
  if (!at.has("bytes")) return rank;
  const JsonAt bytes = at.at("bytes");
  for (const std::string& stage : bytes.keys()) {
    const JsonAt of_stage = bytes.at(stage);
    if (!rank.stages.contains(stage)) of_stage.refuse("a stage without times");
    if (!is_replay_exchange(stage)) of_stage.refuse("no rows move in this stage");
    of_stage.expect_keys({"bytes", "letter"});
    rank.bytes[stage] = {.bytes = of_stage.at("bytes").count(),
                         .letter = of_stage.at("letter").name_of(kLetters)};
  }
  return rank;
}

// What all ranks have in common must be the same; the first one says what that is.
void expect_like(const JsonAt& at, const ReplayRank& first, const ReplayRank& rank) {
  const auto names = [](const ReplayRank& of) {
    std::string text;
    for (const auto& [stage, times] : of.stages) text += (text.empty() ? "" : ", ") + stage;
    return text;
  };
  if (names(first) != names(rank)) {
    at.at("stages").refuse(fmt::format("rank {} has times of {}, rank {} of {}", rank.rank,
                                       names(rank), first.rank, names(first)));
  }
  const std::size_t length = first.stages.begin()->second.duration_s.size();
  for (const auto& [stage, times] : rank.stages) {
    const JsonAt place = at.at("stages").at(stage);
    if (times.duration_s.size() != length) {
      place.refuse(fmt::format("{} iterations, {} of rank {} has {}", times.duration_s.size(),
                               first.stages.begin()->first, first.rank, length));
    }
    if (times.begin_s.empty() != first.stages.at(stage).begin_s.empty()) {
      place.refuse(
          fmt::format("durations of one rank and both ends of another (rank {})", first.rank));
    }
  }
  for (const auto& [stage, bytes] : first.bytes) {
    if (!rank.bytes.contains(stage)) {
      at.refuse(fmt::format("no bytes of {}, which rank {} has", stage, first.rank));
    }
  }
  for (const auto& [stage, bytes] : rank.bytes) {
    const auto of_first = first.bytes.find(stage);
    if (of_first == first.bytes.end() || of_first->second.letter != bytes.letter) {
      at.at("bytes").at(stage).refuse(
          fmt::format("bytes of letter {}, rank {} has {}", bytes.letter, first.rank,
                      of_first == first.bytes.end() ? "none" : of_first->second.letter));
    }
  }
}

// Numbers groups in the order in which ranks meet them.
void renumber_groups(const JsonAt& at, ReplayPoint& point) {
  std::map<int, int> number_of, size_of;
  for (ReplayRank& rank : point.ranks) {
    const int next = static_cast<int>(number_of.size());
    rank.group = number_of.emplace(rank.group, next).first->second;
    ++size_of[rank.group];
  }
  for (const auto& [group, rows] : size_of) {
    if (static_cast<std::int64_t>(rows) * point.ranks_per_row == point.ep_size) continue;
    at.at("ranks").refuse(fmt::format("{} entries of one group, {} rank{} each, are not ep_size {}",
                                      rows, point.ranks_per_row,
                                      point.ranks_per_row == 1 ? "" : "s", point.ep_size));
  }
}

void read_ranks(const JsonAt& at, ReplayPoint& point) {
  std::set<int> seen;
  for (const JsonAt& item : at.at("ranks").items()) {
    ReplayRank rank = read_rank(item);
    if (!seen.insert(rank.rank).second) {
      item.at("rank").refuse(fmt::format("rank {} is there twice", rank.rank));
    }
    expect_like(item, point.ranks.empty() ? rank : point.ranks.front(), rank);
    point.ranks.push_back(std::move(rank));
  }
  renumber_groups(at, point);
  const auto& times = point.ranks.front().stages;
  for (const std::string& stage : replay_stage_names()) {
    if (times.contains(stage)) point.stages.push_back(stage);
  }
  const std::size_t beside_exchange = times.size() - (times.contains(kWholeLayer) ? 1 : 0);
  if (times.contains(kBareExchange) && beside_exchange > 1) {
    at.at("ranks").refuse("'exchange' is one bare exchange and stands instead of a layer's stages");
  }
}

std::string read_transport(const JsonAt& at) {
  const std::string text = at.text();
  const auto name = transport_of_text(text);
  if (name.has_value()) return *name;
  at.name_of(transport_names());
  return "";
}

void read_transports(const JsonAt& at, ReplayPoint& point) {
  if (at.has("expected_transport")) {
    const JsonAt expected = at.at("expected_transport");
    if (expected.is_object()) {
      expected.expect_keys({"within_host", "between_hosts"});
      point.expected_transport = {.within_host = read_transport(expected.at("within_host")),
                                  .between_hosts = read_transport(expected.at("between_hosts"))};
      for (const ReplayRank& rank : point.ranks) {
        if (rank.host.empty()) {
          expected.refuse(fmt::format(
              "rank {} names no host, so nobody knows which pairs share one", rank.rank));
        }
      }
    } else {
      const std::string everywhere = read_transport(expected);
      point.expected_transport = {.within_host = everywhere, .between_hosts = everywhere};
    }
  }
  if (!at.has("transports")) return;
  std::set<int> ranks;
  for (const ReplayRank& rank : point.ranks) ranks.insert(rank.rank);
  for (const JsonAt& item : at.at("transports").items()) {
    item.expect_keys({"from", "to", "transport"});
    PairTransport pair{.from = item.at("from").small_count(),
                       .to = item.at("to").small_count(),
                       .transport = read_transport(item.at("transport"))};
    for (const char* end : {"from", "to"}) {
      const int rank = item.at(end).small_count();
      if (!ranks.contains(rank)) item.at(end).refuse(fmt::format("there is no rank {}", rank));
    }
    point.transports.push_back(std::move(pair));
  }
}

std::vector<std::string> read_notes(const JsonAt& at) {
  std::vector<std::string> notes;
  if (!at.has("notes")) return notes;
  for (const JsonAt& note : at.at("notes").items()) notes.push_back(note.text());
  return notes;
}

ReplayPoint read_point(const JsonAt& at) {
  at.expect_keys({"name", "ep_size", "regime", "warmup", "ranks"},
                 {"repeat", "tokens_global", "ranks_per_row", "check", "expected_transport",
                  "transports", "rows_per_expert", "notes"});
  ReplayPoint point;
  point.name = at.at("name").text();
  point.ep_size = at.at("ep_size").small_count(1);
  if (at.has("repeat")) point.repeat = at.at("repeat").small_count();
  if (at.has("tokens_global")) point.tokens_global = at.at("tokens_global").count();
  point.regime = at.at("regime").name_of(kRegimes);
  if (at.has("warmup")) point.warmup = at.at("warmup").count();
  if (at.has("ranks_per_row")) point.ranks_per_row = at.at("ranks_per_row").small_count(1);
  if (at.has("check")) point.check = at.at("check").name_of({"passed", "failed", "none"});
  if (at.has("rows_per_expert")) point.rows_per_expert = at.at("rows_per_expert").counts();
  point.notes = read_notes(at);
  read_ranks(at, point);
  read_transports(at, point);
  return point;
}

void expect_version(const JsonAt& at) {
  const std::string version = at.at("schema_version").text();
  const std::string known = kReplaySchemaVersion;
  const auto major = [](const std::string& of) { return of.substr(0, of.find('.')); };
  if (major(version) != major(known)) {
    at.at("schema_version")
        .refuse(fmt::format("{} is not readable, this build reads {}.x", version, major(known)));
  }
}

}  // namespace

std::vector<std::string> replay_stage_names() {
  std::vector<std::string> names(kStageNames.begin(), kStageNames.end());
  names.push_back(kBareExchange);
  names.push_back(kWholeLayer);
  return names;
}

bool is_replay_exchange(const std::string& stage) {
  if (stage == kBareExchange) return true;
  for (std::size_t s = 0; s < kStageNames.size(); ++s) {
    if (stage == kStageNames[s]) return is_exchange(static_cast<Stage>(s));
  }
  return false;
}

std::size_t ReplayPoint::num_iterations() const {
  return ranks.front().stages.begin()->second.duration_s.size();
}

ReplayFile parse_replay(const std::string& text, const std::string& path) {
  const Json json = parse_json(text, path);
  const JsonAt root(json, path);
  if (!root.is_object() || !root.has("format")) root.refuse("has no 'format': \"epsweep_replay\"");
  root.at("format").name_of({kReplayFormat});
  expect_version(root);
  root.expect_keys({"format", "schema_version", "tool", "points"}, {"notes"});
  ReplayFile file{
      .path = path, .tool = root.at("tool").text(), .notes = read_notes(root), .points = {}};
  for (const JsonAt& point : root.at("points").items()) file.points.push_back(read_point(point));
  return file;
}

}  // namespace epsweep
