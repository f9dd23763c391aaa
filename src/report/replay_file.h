// Measurements of another tool, as one JSON file holds them. What every key means, and what the
// reader refuses: src/report/replay_format.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "report/transport_check.h"

namespace epsweep {

inline constexpr const char* kReplayFormat = "epsweep_replay";
inline constexpr const char* kReplaySchemaVersion = "1.0";

// The seven of a layer; `exchange`, one bare exchange, instead of them; `layer`, all of it, alone
// or beside them.
inline constexpr const char* kBareExchange = "exchange";
inline constexpr const char* kWholeLayer = "layer";
std::vector<std::string> replay_stage_names();
bool is_replay_exchange(const std::string& stage);

// common = own + offset_s + drift_ppm * 1e-6 * (own - at_s), true within bound_s.
struct ReplayClock {
  double offset_s = 0, drift_ppm = 0, at_s = 0, bound_s = 0;
  double common_s(double own_s) const {
    return own_s + offset_s + drift_ppm * 1e-6 * (own_s - at_s);
  }
};

// One value for every iteration.
struct ReplayTimes {
  std::vector<double> begin_s,
      end_s;                       // on the rank's own clock; empty where only durations are known
  std::vector<double> duration_s;  // end - begin where those are given
};

struct ReplayBytes {
  std::int64_t bytes = 0;  // sent by the rank in one iteration
  std::string letter;
};

struct ReplayRank {
  int rank = 0;
  int group = 0;  // from 0 without gaps, in the order of the file
  std::string host;
  std::optional<ReplayClock> clock;
  std::optional<std::int64_t> rows;  // received in one iteration
  std::map<std::string, ReplayTimes> stages;
  std::map<std::string, ReplayBytes> bytes;
};

struct ReplayPoint {
  std::string name;
  int ep_size = 1;
  int repeat = 0;
  std::optional<std::int64_t> tokens_global;
  std::string regime;  // aligned, chained or unknown
  std::optional<std::int64_t> warmup;
  int ranks_per_row = 1;
  std::string check = "none";  // or passed, failed
  std::optional<ExpectedTransport> expected_transport;
  std::vector<PairTransport> transports;
  std::vector<std::int64_t> rows_per_expert;  // empty: not said
  std::vector<std::string> stages;            // in the order of a layer; the same of all ranks
  std::vector<ReplayRank> ranks;
  std::vector<std::string> notes;

  std::size_t num_iterations() const;
};

struct ReplayFile {
  std::string path, tool;
  std::vector<std::string> notes;
  std::vector<ReplayPoint> points;
};

// Throws ConfigError "FILE: path.of.the.key: what is wrong".
ReplayFile parse_replay(const std::string& text, const std::string& path);

}  // namespace epsweep
