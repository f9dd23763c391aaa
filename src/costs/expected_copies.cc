#include "costs/expected_copies.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "base/error.h"
#include "workload/distribution.h"

namespace epsweep {
namespace {

std::vector<int> slots_per_domain(const Placement& placement, const GroupPlaces& places) {
  std::vector<int> slots(static_cast<std::size_t>(places.num_domains), 0);
  for (const int rank : placement.rank_of_slot) {
    ++slots[static_cast<std::size_t>(places.domain_of_rank[static_cast<std::size_t>(rank)])];
  }
  return slots;
}

void divide(std::vector<double>& values, std::int64_t by) {
  for (double& value : values) value /= static_cast<double>(by);
}

CopiesPerToken::Domains expected_domains(const DestinationRates& rates,
                                         const std::vector<double>& home_share,
                                         const GroupPlaces& places) {
  std::vector<double> home_share_of_domain(rates.hits_of_domain.size(), 0.0);
  for (std::size_t rank = 0; rank < home_share.size(); ++rank) {
    home_share_of_domain[static_cast<std::size_t>(places.domain_of_rank[rank])] += home_share[rank];
  }
  CopiesPerToken::Domains domains;
  for (std::size_t rank = 0; rank < home_share.size(); ++rank) {
    // Shares are rounded: all of them together may be a little more than 1.
    const double own =
        std::min(1.0, home_share_of_domain[static_cast<std::size_t>(places.domain_of_rank[rank])]);
    domains.a_intra += rates.rows_to_rank[rank] * (own - home_share[rank]);
    domains.a_inter += rates.rows_to_rank[rank] * (1 - own);
    domains.b_intra += rates.hits_of_rank[rank] * (own - home_share[rank]);
    domains.b_inter += rates.hits_of_rank[rank] * (1 - own);
  }
  for (std::size_t domain = 0; domain < rates.hits_of_domain.size(); ++domain) {
    domains.c += rates.hits_of_domain[domain];
    domains.e += rates.hits_of_domain[domain] * (1 - home_share_of_domain[domain]);
  }
  return domains;
}

void add(CopiesPerToken& total, const CopiesPerToken& part) {
  total.a += part.a;
  total.a_self += part.a_self;
  total.b += part.b;
  total.b_self += part.b_self;
  total.d += part.d;
  if (!part.domains.has_value()) return;
  if (!total.domains.has_value()) total.domains.emplace();
  total.domains->a_intra += part.domains->a_intra;
  total.domains->a_inter += part.domains->a_inter;
  total.domains->b_intra += part.domains->b_intra;
  total.domains->b_inter += part.domains->b_inter;
  total.domains->c += part.domains->c;
  total.domains->e += part.domains->e;
}

CopiesPerToken over_layers(CopiesPerToken sum, int layers) {
  for (double* value : {&sum.a, &sum.a_self, &sum.b, &sum.b_self, &sum.d}) *value /= layers;
  if (!sum.domains.has_value()) return sum;
  CopiesPerToken::Domains& domains = *sum.domains;
  for (double* value : {&domains.a_intra, &domains.a_inter, &domains.b_intra, &domains.b_inter,
                        &domains.c, &domains.e}) {
    *value /= layers;
  }
  return sum;
}

}  // namespace

double hit_probability(int num_experts, int num_marked, int top_k) {
  EPS_EXPECT(top_k >= 1 && top_k <= num_experts && num_marked >= 0 && num_marked <= num_experts,
             "hit probability of impossible counts");
  // P(none is marked), pick after pick. The numerators reach 0 where nothing else is left.
  double missed = 1;
  for (int pick = 0; pick < top_k && missed > 0; ++pick) {
    const int unmarked_left = std::max(num_experts - num_marked - pick, 0);
    missed *= static_cast<double>(unmarked_left) / static_cast<double>(num_experts - pick);
  }
  return 1 - missed;
}

double expected_active_experts(int num_experts, int top_k, std::int64_t num_tokens) {
  const double share = static_cast<double>(top_k) / num_experts;
  if (share >= 1) return num_tokens > 0 ? num_experts : 0;
  return -num_experts * std::expm1(static_cast<double>(num_tokens) * std::log1p(-share));
}

DestinationRates uniform_destinations(const Placement& placement, int top_k,
                                      const GroupPlaces* places) {
  EPS_EXPECT(placement.num_slots() == placement.num_experts,
             "no closed form where experts have replicas");
  DestinationRates rates;
  for (const std::vector<int>& experts : placement.experts_of_rank) {
    const auto num_experts = static_cast<int>(experts.size());
    rates.rows_to_rank.push_back(static_cast<double>(top_k) * num_experts / placement.num_experts);
    rates.hits_of_rank.push_back(hit_probability(placement.num_experts, num_experts, top_k));
  }
  if (places == nullptr) return rates;
  for (const int slots : slots_per_domain(placement, *places)) {
    rates.hits_of_domain.push_back(hit_probability(placement.num_experts, slots, top_k));
  }
  return rates;
}

DestinationRates sampled_destinations(const TokenSample& sample, const Placement& placement,
                                      const GroupPlaces* places) {
  EPS_EXPECT(sample.trace.num_tokens > 0, "a sample without tokens");
  const auto ep_size = static_cast<std::size_t>(placement.ep_size);
  const auto num_domains = static_cast<std::size_t>(places == nullptr ? 0 : places->num_domains);
  DestinationRates rates{.rows_to_rank = std::vector<double>(ep_size, 0.0),
                         .hits_of_rank = std::vector<double>(ep_size, 0.0),
                         .hits_of_domain = std::vector<double>(num_domains, 0.0)};
  std::vector<std::int64_t> last_token_to_rank(ep_size, -1), last_token_to_domain(num_domains, -1);
  const SlotTable slots = placement.slot_table();
  for (std::int64_t token = 0; token < sample.trace.num_tokens; ++token) {
    const std::uint64_t hash = replica_hash(sample.first_token + token);
    for (const std::int32_t expert : sample.trace.of_token(token)) {
      const std::int32_t slot = slots.slot_of(expert, hash);
      const auto rank =
          static_cast<std::size_t>(placement.rank_of_slot[static_cast<std::size_t>(slot)]);
      ++rates.rows_to_rank[rank];
      if (last_token_to_rank[rank] == token) continue;
      last_token_to_rank[rank] = token;
      ++rates.hits_of_rank[rank];
      if (places == nullptr) continue;
      const auto domain = static_cast<std::size_t>(places->domain_of_rank[rank]);
      if (last_token_to_domain[domain] == token) continue;
      last_token_to_domain[domain] = token;
      ++rates.hits_of_domain[domain];
    }
  }
  divide(rates.rows_to_rank, sample.trace.num_tokens);
  divide(rates.hits_of_rank, sample.trace.num_tokens);
  divide(rates.hits_of_domain, sample.trace.num_tokens);
  return rates;
}

CopiesPerToken expected_copies(const DestinationRates& rates, const std::vector<double>& home_share,
                               const GroupPlaces* places) {
  EPS_EXPECT(rates.hits_of_rank.size() == home_share.size(),
             "rates and token shares are of different EP sizes");
  CopiesPerToken copies;
  for (std::size_t rank = 0; rank < home_share.size(); ++rank) {
    copies.a += rates.rows_to_rank[rank];
    copies.a_self += rates.rows_to_rank[rank] * home_share[rank];
    copies.b += rates.hits_of_rank[rank];
    copies.b_self += rates.hits_of_rank[rank] * home_share[rank];
  }
  copies.d = copies.b - copies.b_self;
  if (places != nullptr) copies.domains = expected_domains(rates, home_share, *places);
  return copies;
}

ExpectedCopiesSum::ExpectedCopiesSum(const SweepPoint& point, std::optional<GroupPlaces> places,
                                     SampleCache& samples)
    : point_(point), places_(std::move(places)), samples_(samples) {
  const Foresight foresight = foresight_of(point);
  if (foresight == Foresight::recorded || point.tokens_global() == 0) return;
  for (const TokenRange& tokens : token_ranges(point)) {
    home_share_.push_back(static_cast<double>(tokens.size()) /
                          static_cast<double>(point.tokens_global()));
  }
  sum_.emplace();
  // A hash of the token chooses among replicas, which leaves no simple form.
  if (foresight == Foresight::uniform && point.redundant_slots == 0) return;
  sum_->method = ExpectationMethod::monte_carlo;
  sum_->sample_tokens = num_sample_tokens(point);
}

void ExpectedCopiesSum::add_layer(int layer, const Placement& placement) {
  if (!sum_.has_value()) return;
  const GroupPlaces* places = places_.has_value() ? &*places_ : nullptr;
  const DestinationRates rates =
      sum_->method == ExpectationMethod::closed_form
          ? uniform_destinations(placement, point_.model.top_k, places)
          : sampled_destinations(samples_.of(point_, layer), placement, places);
  add(sum_->per_token, expected_copies(rates, home_share_, places));
}

std::optional<ExpectedCopies> ExpectedCopiesSum::finish() const {
  std::optional<ExpectedCopies> mean = sum_;
  if (mean.has_value()) mean->per_token = over_layers(mean->per_token, point_.layers);
  return mean;
}

}  // namespace epsweep
