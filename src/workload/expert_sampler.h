// Draws top_k distinct experts per token so that each expert is picked as often as its load says.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"

namespace epsweep {

// Inclusion probabilities pi_e = min(1, c * load_e) with sum pi_e = top_k: the share of tokens that
// pick expert e. Experts at the cap are picked by every token and the rest shares what is left.
// Loads are finite and not negative. Throws ConfigError if fewer than top_k of them are positive.
std::vector<double> inclusion_probabilities(std::span<const double> loads, int top_k);

// Successive sampling without replacement (the order of a race of exponential clocks; Rosen, J.
// Stat. Plan. Inference 62, 1997), with weights solved numerically so that the inclusion
// probabilities are pi_e to about 0.1 % or 1e-5, whichever is larger. This is also how a router
// with Gumbel noise on its logits picks, so which experts meet in a token is as random as it can
// be. Building one takes milliseconds, a draw about 50 ns.
class ExpertSampler {
 public:
  ExpertSampler(std::span<const double> loads, int top_k);

  // Distinct experts of one token; experts.size() = top_k. Uses the stream from index 0 on.
  void draw(const RandomStream& stream, std::span<std::int32_t> experts) const;

  // Rates of the experts' clocks, 0 for those that never ring and infinite for those that every
  // token has.
  std::vector<double> rates() const;

 private:
  // One column of Walker's alias table (Walker 1977; Vose 1991).
  struct Column {
    std::uint64_t keep_up_to = 0;  // of 2^64
    std::int32_t kept = 0, alias = 0;
  };

  void build_table();
  std::int32_t draw_one(std::uint64_t bits) const;
  void finish_exactly(const RandomStream& stream, std::uint64_t next, std::size_t num_drawn,
                      std::span<std::int32_t> experts) const;

  std::size_t top_k_;
  std::vector<std::int32_t> always_;  // pi = 1
  std::vector<double> weights_;       // of the experts that are drawn; 0 for the others
  std::vector<Column> table_;         // one column for each expert with a weight
};

}  // namespace epsweep
