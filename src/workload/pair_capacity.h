// How many rows an exchange of fixed capacity gives every pair of ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/sweep_point.h"
#include "workload/placement.h"
#include "workload/trace.h"

namespace epsweep {

// Rows from the rank to the rank that have most between them, own rows included. About 7 ns per
// assignment; the same on every rank, as each has the whole group's trace.
std::int64_t most_pair_rows(const Trace& trace, const Placement& placement,
                            const std::vector<TokenRange>& tokens_of_rank);

// Without capacity_factor: the most rows that a pair has in any layer, `most_rows`. The routing is
// prescribed, so this is known before anything runs; it is the least that loses no row, and so the
// least padding. The worst case of any routing (tokens of a rank times the smaller of top_k and the
// other's slots) would multiply what travels by up to the EP size and say more about that bound
// than about the exchange. With capacity_factor f, which serving engines declare since they do not
// know what comes: ceil(f * mean), mean = tokens_global * top_k / ep_size^2 rows. At least 1.
std::int64_t pair_capacity(const SweepPoint& point, std::int64_t most_rows);

// Why the capacity is not enough, or too much for 32-bit row positions; absent if it fits.
std::optional<std::string> capacity_refusal(const SweepPoint& point, std::int64_t most_rows);

}  // namespace epsweep
