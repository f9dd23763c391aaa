// Copies of token rows that a routing is expected to need, to stand beside those counted from one
// trace of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "costs/traffic.h"
#include "plan/sweep_point.h"
#include "plan/topology.h"
#include "workload/placement.h"
#include "workload/token_sample.h"

namespace epsweep {

enum class ExpectationMethod { closed_form, monte_carlo };
inline const std::vector<std::string> kExpectationMethodNames = {"closed_form", "monte_carlo"};
inline const std::string& to_string(ExpectationMethod method) {
  return kExpectationMethodNames[static_cast<std::size_t>(method)];
}

// P(a token has at least one of `num_marked` experts) where all sets of top_k distinct ones of
// num_experts are equally likely: 1 - C(E - n, k) / C(E, k). With n = E / P on each of P ranks,
// P times it are the distinct destination ranks of a token.
double hit_probability(int num_experts, int num_marked, int top_k);

// E * (1 - (1 - k/E)^C): experts that at least one of C independent tokens picks, where all are
// equally likely.
double expected_active_experts(int num_experts, int top_k, std::int64_t num_tokens);

// Means over the tokens of a layer, of where they go.
struct DestinationRates {
  std::vector<double> rows_to_rank;    // [ep_size], sum top_k
  std::vector<double> hits_of_rank;    // [ep_size], share of tokens with an expert there
  std::vector<double> hits_of_domain;  // [num_domains]; empty where unknown
};

// Of uniform routing with one slot for each expert; exact.
DestinationRates uniform_destinations(const Placement& placement, int top_k,
                                      const GroupPlaces* places);
// Of a sample of tokens. Standard errors are about 1 / sqrt(tokens) of a token's spread, which is
// one copy or so.
DestinationRates sampled_destinations(const TokenSample& sample, const Placement& placement,
                                      const GroupPlaces* places);

// home_share[rank]: the share of tokens that live there. Which experts a token picks does not
// depend on where it lives, so probabilities multiply.
CopiesPerToken expected_copies(const DestinationRates& rates, const std::vector<double>& home_share,
                               const GroupPlaces* places);

struct ExpectedCopies {
  CopiesPerToken per_token;  // mean over layers
  ExpectationMethod method = ExpectationMethod::closed_form;
  std::int64_t sample_tokens = 0;  // per layer, of monte_carlo
};

// Takes the layers of a point one after the other.
class ExpectedCopiesSum {
 public:
  // Point and samples outlive it.
  ExpectedCopiesSum(const SweepPoint& point, std::optional<GroupPlaces> places,
                    SampleCache& samples);
  void add_layer(int layer, const Placement& placement);
  // After all layers. Absent where nothing can be expected: a recording says nothing about other
  // tokens, and without tokens nothing goes anywhere.
  std::optional<ExpectedCopies> finish() const;

 private:
  const SweepPoint& point_;
  std::optional<GroupPlaces> places_;
  SampleCache& samples_;
  std::vector<double> home_share_;
  std::optional<ExpectedCopies> sum_;  // over the layers so far
};

}  // namespace epsweep
