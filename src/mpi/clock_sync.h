// How far the clocks of ranks are apart: which ranks read the same one, and estimates for the rest.
#pragma once

#include <string>
#include <vector>

#include "base/clock_map.h"
#include "base/rank_clock.h"
#include "mpi/comm.h"

namespace epsweep {

// Ranks that read one CLOCK_MONOTONIC: the same boot of a kernel and the same time namespace.
// Containers of one kernel belong together although neither their names nor their shared memory
// say so.
struct ClockDomains {
  std::vector<int> domain_of_rank;  // from 0, in order of the lowest rank
  std::vector<int> leaders;         // of every domain its lowest rank, ascending

  int num_domains() const { return static_cast<int>(leaders.size()); }
};

// Ranks with equal keys share a domain; an empty key stands for a clock of its own.
ClockDomains clock_domains(const std::vector<std::string>& keys);

// When a rank entered and left one barrier, on the clock it reads.
struct BarrierTimes {
  double entered_s = 0, left_s = 0;
};

// Nobody leaves a barrier before everybody entered. Empties the keys of ranks whose times deny that
// to each other: virtual machines restored from one snapshot name the same boot but do not share a
// clock. By rank.
void drop_contradicted_keys(const std::vector<BarrierTimes>& times, std::vector<std::string>& keys);

// Collective. A rank with an injected clock, or one whose kernel does not tell its boot, gets a
// domain of its own.
ClockDomains find_clock_domains(const Comm& comm, const RankClock& clock);

// An edge of the tree takes max_rounds, which is 1 ms on Ethernet. Where ranks wait for cores it
// ends early, but not before min_rounds, when its share of max_s is used up; connecting is not
// counted. The longer one looks, the shorter the shortest round trip.
struct PingPongLimits {
  int min_rounds = 4, max_rounds = 50;
  double max_s = 20e-3;  // of the path from rank 0 to a leader, in equal shares
};

// Collective over the communicator the domains are of, without being a barrier. Leaders of domains
// form a binomial tree with rank 0 at its root; each asks its parent for the time, and of all
// questions the one with the shortest round trip counts:
//   offset = the parent's answer - middle of question and answer on the own clock
// The answer was read somewhere between the two, so the error is at most half the round trip;
// bounds add from the root down, with what the parent's clock may drift between its own alignment
// and the answer (kMaxDriftPpm). Other ranks get their leader's values. Where all ranks share a
// clock nothing is sent. Waits inside MPI, which yields if told to (mpi_yield_when_idle).
ClockAlignment align_clocks(const Comm& comm, const ClockDomains& domains, const RankClock& clock,
                            const PingPongLimits& limits = {});

}  // namespace epsweep
