// Which replica of an expert serves a token. C++17: kernels include it too.
#pragma once

#include <cstdint>

#include "base/random.h"

namespace epsweep {

// Among the slots of an expert the one for a token of the group's C: a hash of its global index
// chooses, so every rank agrees without talking. A plain remainder would follow any regularity of
// the token order.
constexpr std::uint64_t replica_hash(std::int64_t token) {
  return mix64(static_cast<std::uint64_t>(token) + 1) >> 32;
}
constexpr std::uint64_t chosen_replica(std::uint64_t hash, std::uint64_t replicas) {
  return (hash * replicas) >> 32;
}

}  // namespace epsweep
