// Counter-based random values: value = f(key, index), so any rank can regenerate any value.
#pragma once

#include <cstdint>

namespace epsweep {

// The output function of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014; constants of Stafford's
// variant 13). A bijection of 64-bit words.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// What a stream of values is for; keeps streams with equal coordinates apart.
enum class Stream : std::uint64_t {
  token = 1,
  gate_weight = 2,
  expert_gate_up = 3,
  expert_down = 4,
  routing = 5,
  load = 6,
  check = 7,
  test = 8,
  placement = 9,
  selection_bias = 10,
  order = 11,
  simulation = 20,
};

// A position in the family of streams: SplitMix64 started at `state`, with random access.
class RandomStream {
 public:
  constexpr RandomStream(std::uint64_t seed, Stream stream, std::uint64_t a = 0,
                         std::uint64_t b = 0, std::uint64_t c = 0)
      : state_(absorb(
            absorb(absorb(absorb(mix64(seed + kGamma), static_cast<std::uint64_t>(stream)), a), b),
            c)) {}

  constexpr std::uint64_t bits(std::uint64_t index) const {
    return mix64(state_ + (index + 1) * kGamma);
  }
  // Uniform in [0, 1), 53 bits.
  constexpr double uniform(std::uint64_t index) const {
    return static_cast<double>(bits(index) >> 11) * 0x1.0p-53;
  }
  // Uniform in [0, bound), bound >= 1; bias below 2^-32 for bounds below 2^32 (Lemire 2019).
  constexpr std::uint64_t below(std::uint64_t index, std::uint64_t bound) const {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(bits(index)) * bound) >> 64);
  }

 private:
  static constexpr std::uint64_t kGamma = 0x9e3779b97f4a7c15ULL;
  static constexpr std::uint64_t absorb(std::uint64_t state, std::uint64_t word) {
    return mix64(state ^ (mix64(word + kGamma) * 0xff51afd7ed558ccdULL + kGamma));
  }
  std::uint64_t state_;
};

// FNV-1a over 64-bit words, finished by mix64: checksums and fingerprints, not security.
class Fingerprint {
 public:
  constexpr void add(std::uint64_t word) { state_ = mix64((state_ ^ word) * 0x100000001b3ULL); }
  constexpr std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325ULL;
};

}  // namespace epsweep
