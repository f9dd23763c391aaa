// The gather behind Comm::gather(), with its message limit as an argument so that tests reach the
// splitting with small data. Not for use outside src/mpi and its tests.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mpi/comm.h"

namespace epsweep {

// Elements per message, of the broadcasts too: MPI counts are int.
inline constexpr std::int64_t kMaxMessageElements = std::int64_t{1} << 30;

template <typename T>
struct GatheredParts {
  std::vector<T> values;             // by rank, without gaps
  std::vector<std::int64_t> counts;  // [size]
};

// Both vectors are empty on ranks other than root. T: char, double or std::int64_t.
template <typename T>
GatheredParts<T> gather_in_chunks(const Comm& comm, std::span<const T> own, int root,
                                  std::int64_t chunk);

}  // namespace epsweep
