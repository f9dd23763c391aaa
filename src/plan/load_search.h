// The load at which a series meets a limit: the ladder first, then loads between its last admitted
// and its first refused one. Pure: every rank feeds its own with the same ends, and all go on to
// the same load.
#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "plan/ladder.h"

namespace epsweep {

// How a load of a series ended.
enum class LoadEnd {
  admitted,       // it ran, within every limit
  too_slow,       // it ran, above the latency objective
  kv_memory,      // the KV room does not hold its sequences
  device_memory,  // its buffers do not fit
  no_answer,      // it could not run, or went wrong: says nothing of limits
};

// Loads are in the unit of the ladder: tokens of a group, or of a rank.
class LoadSearch {
 public:
  // Absent: no loads but the ladder's.
  explicit LoadSearch(std::optional<double> resolution) : resolution_(resolution) {}

  // One end of a load, by measurement or without one. A load that is too slow is refused by the
  // second such end only, and admitted where the second is fast enough: one slow sample does not
  // stop a sweep. Loads of the ladder come in ascending order; ends at or above the refused load
  // say nothing.
  void end(std::int64_t tokens, LoadEnd how);
  // Where the KV room ends is known without running: loads above `most` are refused by it.
  void know_kv_room(std::int64_t most);

  // A load that was too slow once; to be measured again before any other of its series.
  std::optional<std::int64_t> again() const { return again_; }
  // With the ladder behind: the next load between the admitted and the refused one. Absent where
  // there are not both, where they are within the resolution or neighbours, and where the load has
  // given no answer. It is their geometric mean, rounded, which halves their ratio's logarithm; but
  // the last load that the KV room holds where that is what refuses, since that one is exact.
  std::optional<std::int64_t> next_between() const;
  // The most loads that next_between() may still give.
  int most_left() const;

  // The highest load known to be within the limits, and the lowest one known to be beyond.
  std::optional<std::int64_t> admitted() const { return admitted_; }
  std::optional<std::int64_t> refused() const { return refused_; }
  // ladder_end where nothing was refused.
  StopKind stopped_by() const { return stopped_by_; }

 private:
  void refuse(std::int64_t tokens, StopKind kind);
  bool is_resolved(double ratio) const { return ratio <= 1 + *resolution_; }

  std::optional<double> resolution_;
  std::optional<std::int64_t> admitted_, refused_, again_;
  StopKind stopped_by_ = StopKind::ladder_end;
  std::set<std::int64_t> without_answer_;
};

}  // namespace epsweep
