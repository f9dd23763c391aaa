// Tokens that no point runs, to say what its routing does to tokens in general.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "workload/distribution.h"
#include "workload/trace.h"

namespace epsweep {

// Of the point's distribution.
Foresight foresight_of(const SweepPoint& point);

// Tokens of a sample: 4,096, which is right to about 0.3 % of the copies of a token. Where the
// model's own router chooses, 2^30 / (num_experts * hidden_dim) within 256..4,096: 585 for
// DeepSeek-V3, 0.6 %, in a quarter of a second.
std::int64_t num_sample_tokens(const SweepPoint& point);

// Tokens first_token, first_token + 1, ... of the same stream as the point's own C, far beyond the
// last one that any trace has.
struct TokenSample {
  std::int64_t first_token = 0;
  Trace trace;  // token 0 of it is first_token
};

// Throws ConfigError as draw_trace() does. Not for recordings, which hold no further tokens.
TokenSample draw_sample(const SweepPoint& point, int layer);

// Samples that several points of a plan share, drawn once: those of equal model, routing, layer,
// step and seed, whatever their C, EP size and placement.
class SampleCache {
 public:
  // Valid as long as the cache.
  const TokenSample& of(const SweepPoint& point, int layer);

 private:
  std::map<std::string, TokenSample> samples_;
};

}  // namespace epsweep
