// The clock a rank reads: the host's, or one that is known to be wrong.
#pragma once

#include "base/host_probe.h"

namespace epsweep {

enum class ClockSource {
  host,      // CLOCK_MONOTONIC as it is
  injected,  // shifted and drifting on purpose, so that the truth about it is known
};

struct RankClock {
  ClockSource source = ClockSource::host;
  double offset_s = 0;   // what an injected clock shows ahead of the host's at origin_s
  double drift_ppm = 0;  // and gains from then on, microseconds per second of the host's clock
  double origin_s = 0;

  // What it shows when the host's clock shows host_s.
  double at(double host_s) const {
    if (source == ClockSource::host) return host_s;
    return host_s + offset_s + drift_ppm * 1e-6 * (host_s - origin_s);
  }
  double now_s() const { return at(monotonic_s()); }
};

}  // namespace epsweep
