// Deliberate mistakes, so that tests and demonstrations can show that the checks catch them. They
// wrap what the catalogs make and work on host memory.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/rank_clock.h"
#include "base/stage.h"
#include "device/backend.h"
#include "device/grouped_gemm.h"
#include "device/transport.h"

namespace epsweep {

enum class FaultKind {
  swap_experts,  // two local experts get each other's weights
  skip_expert,   // the output of the first expert with rows is never written
  drop_row,      // the last row of an exchange never arrives
  check_error,   // the check itself breaks
  plan_seed,     // the rank plans with another seed
  delay,         // the rank sleeps before or in a stage of timed iterations
  slow_clock,    // the rank's clock is behind and loses time
};

// Of `delay`.
struct Delay {
  std::optional<Stage> stage;
  DelayPlace place = DelayPlace::before;
  std::int64_t us = 0;
  // Iterations i with i % every == first; with `every` 0 the one iteration `first`.
  std::int64_t every = 1, first = 0;

  bool applies(std::int64_t iteration) const {
    return every == 0 ? iteration == first : iteration % every == first;
  }
};

struct Fault {
  FaultKind kind = FaultKind::swap_experts;
  int rank = 0;                // world rank it happens on
  std::optional<int> ep_size;  // only at this EP size
  Delay delay;
  double offset_ms = 5;   // slow_clock: behind by this
  double drift_ppm = 50;  // slow_clock: and losing this

  bool applies(int world_rank, int at_ep_size) const {
    return rank == world_rank && (!ep_size || *ep_size == at_ep_size);
  }
};

// "swap_experts:rank=1", "drop_row:rank=3:ep_size=8", or with stage=NAME, us=N and optionally
// place=before|inside, every=N, first=N "delay:rank=5:stage=dispatch:us=20000". Throws ConfigError.
Fault parse_fault(const std::string& text);
const std::vector<std::string>& fault_names();

// How long a rank with these faults is delayed there.
std::int64_t delay_us(const std::vector<Fault>& faults, std::int64_t iteration, Stage stage,
                      DelayPlace place);

// What the rank reads as its clock, which is the host's unless a fault is about that; its drift
// starts now.
RankClock clock_with_faults(const std::vector<Fault>& faults, int world_rank);

// The kernel itself unless one of the faults is about kernels; the backend outlives it.
std::unique_ptr<GroupedGemm> with_faults(std::unique_ptr<GroupedGemm> gemm, const GemmShape& shape,
                                         const std::vector<Fault>& faults, Backend& backend);
std::unique_ptr<Transport> with_faults(std::unique_ptr<Transport> transport,
                                       const std::vector<Fault>& faults, Backend& backend);

}  // namespace epsweep
