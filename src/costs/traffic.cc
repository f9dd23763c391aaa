#include "costs/traffic.h"

#include <algorithm>
#include <cstddef>

#include "base/error.h"

namespace epsweep {
namespace {

// Counts token by token. `last_token_to_*` remember the last token that went there, so that nothing
// has to be cleared between tokens.
class LayerPass {
 public:
  LayerPass(const Trace& trace, const Placement& placement, const std::vector<int>& domain_of_rank)
      : trace_(trace),
        placement_(placement),
        slots_(placement.slot_table()),
        domain_of_rank_(domain_of_rank),
        rows_per_slot_(placement.expert_of_slot.size(), 0),
        copies_to_rank_(domain_of_rank.size(), 0),
        rows_to_rank_(domain_of_rank.size(), 0),
        last_token_to_rank_(domain_of_rank.size(), -1),
        last_token_to_domain_(domain_of_rank.size(), -1) {}

  // Copies of the tokens of one rank.
  struct FromRank {
    std::int64_t a_self = 0, b = 0, b_self = 0, c = 0;
    // To any rank of the own domain, the own rank included; to the own domain at all.
    std::int64_t a_domain = 0, b_domain = 0, c_own = 0;
  };

  FromRank count(const TokenRange& tokens, std::size_t home) {
    const int home_domain = domain_of_rank_[home];
    FromRank from;
    std::ranges::fill(rows_to_rank_, 0);
    for (std::int64_t token = tokens.begin; token < tokens.end; ++token) {
      const std::uint64_t hash = replica_hash(token);
      for (const std::int32_t expert : trace_.of_token(token)) {
        const auto slot = static_cast<std::size_t>(slots_.slot_of(expert, hash));
        ++rows_per_slot_[slot];
        const auto rank = static_cast<std::size_t>(placement_.rank_of_slot[slot]);
        ++rows_to_rank_[rank];
        const bool own_domain = domain_of_rank_[rank] == home_domain;
        from.a_domain += own_domain ? 1 : 0;
        if (last_token_to_rank_[rank] == token) continue;
        last_token_to_rank_[rank] = token;
        ++copies_to_rank_[rank];
        ++from.b;
        from.b_self += rank == home ? 1 : 0;
        from.b_domain += own_domain ? 1 : 0;
        std::int64_t& last = last_token_to_domain_[static_cast<std::size_t>(domain_of_rank_[rank])];
        if (last == token) continue;
        last = token;
        ++from.c;
        from.c_own += own_domain ? 1 : 0;
      }
    }
    from.a_self = rows_to_rank_[home];
    return from;
  }

  // By letter A, of the source counted last.
  const std::vector<std::int64_t>& rows_to_rank() const { return rows_to_rank_; }

  std::vector<std::int64_t>& rows_per_slot() { return rows_per_slot_; }
  // By letter B, over all sources counted so far.
  const std::vector<std::int64_t>& copies_to_rank() const { return copies_to_rank_; }

 private:
  const Trace& trace_;
  const Placement& placement_;
  SlotTable slots_;
  const std::vector<int>& domain_of_rank_;
  std::vector<std::int64_t> rows_per_slot_, copies_to_rank_, rows_to_rank_;
  std::vector<std::int64_t> last_token_to_rank_, last_token_to_domain_;
};

void add_source(const LayerPass::FromRank& from, std::int64_t a_copies, Traffic& traffic,
                DomainTraffic& domains) {
  traffic.a_self_copies += from.a_self;
  traffic.b_copies += from.b;
  traffic.b_self_copies += from.b_self;
  traffic.max_remote_rows_sent = std::max(traffic.max_remote_rows_sent, a_copies - from.a_self);
  traffic.max_d_copies_sent = std::max(traffic.max_d_copies_sent, from.b - from.b_self);
  domains.c_copies += from.c;
  domains.e_copies += from.c - from.c_own;
  domains.a_intra_copies += from.a_domain - from.a_self;
  domains.b_intra_copies += from.b_domain - from.b_self;
}

void expect_fitting(const Trace& trace, const Placement& placement,
                    const std::vector<TokenRange>& tokens_of_rank) {
  EPS_EXPECT(tokens_of_rank.size() == static_cast<std::size_t>(placement.ep_size),
             "token ranges and placement are of different EP sizes");
  EPS_EXPECT(placement.num_experts == trace.num_experts,
             "placement and trace are of different models");
}

}  // namespace

LayerCounts count_layer(const Trace& trace, const Placement& placement,
                        const std::vector<TokenRange>& tokens_of_rank, std::int64_t row_bytes,
                        const GroupPlaces* places) {
  expect_fitting(trace, placement, tokens_of_rank);
  EPS_EXPECT(places == nullptr || places->domain_of_rank.size() == tokens_of_rank.size(),
             "places and placement are of different EP sizes");
  // Without places the domains counted below are left out of the result.
  const std::vector<int> domain_of_rank =
      places == nullptr ? std::vector<int>(tokens_of_rank.size(), 0) : places->domain_of_rank;
  LayerPass pass(trace, placement, domain_of_rank);
  LayerCounts counts;
  Traffic& traffic = counts.traffic;
  DomainTraffic domains;
  std::vector<LayerPass::FromRank> sources;
  for (std::size_t home = 0; home < tokens_of_rank.size(); ++home) {
    sources.push_back(pass.count(tokens_of_rank[home], home));
    if (placement.ep_size <= kSendMatrixRanks) {
      counts.send_matrix.insert(counts.send_matrix.end(), pass.rows_to_rank().begin(),
                                pass.rows_to_rank().end());
    }
    counts.most_pair_rows = std::max(counts.most_pair_rows, std::ranges::max(pass.rows_to_rank()));
    const std::int64_t assignments = tokens_of_rank[home].size() * trace.top_k;
    traffic.a_copies += assignments;
    add_source(sources.back(), assignments, traffic, domains);
  }
  const std::vector<std::int64_t> rows = sum_by_rank(placement, pass.rows_per_slot());
  for (std::size_t rank = 0; rank < rows.size(); ++rank) {
    traffic.max_remote_rows_received =
        std::max(traffic.max_remote_rows_received, rows[rank] - sources[rank].a_self);
    traffic.max_d_copies_received =
        std::max(traffic.max_d_copies_received, pass.copies_to_rank()[rank] - sources[rank].b_self);
  }
  traffic.row_bytes = row_bytes;
  traffic.d_copies = traffic.b_copies - traffic.b_self_copies;
  if (places != nullptr) traffic.domains = domains;
  counts.rows_per_slot = std::move(pass.rows_per_slot());
  return counts;
}

std::optional<CopiesPerToken> copies_per_token(const Traffic& traffic, std::int64_t num_tokens) {
  if (num_tokens == 0) return std::nullopt;
  const auto mean = [num_tokens](std::int64_t copies) {
    return static_cast<double>(copies) / static_cast<double>(num_tokens);
  };
  CopiesPerToken copies{.a = mean(traffic.a_copies),
                        .a_self = mean(traffic.a_self_copies),
                        .b = mean(traffic.b_copies),
                        .b_self = mean(traffic.b_self_copies),
                        .d = mean(traffic.d_copies),
                        .domains = std::nullopt};
  if (!traffic.domains.has_value()) return copies;
  const DomainTraffic& domains = *traffic.domains;
  const auto inter = [](std::int64_t total, std::int64_t self, std::int64_t intra) {
    return total - self - intra;
  };
  copies.domains = CopiesPerToken::Domains{
      .a_intra = mean(domains.a_intra_copies),
      .a_inter = mean(inter(traffic.a_copies, traffic.a_self_copies, domains.a_intra_copies)),
      .b_intra = mean(domains.b_intra_copies),
      .b_inter = mean(inter(traffic.b_copies, traffic.b_self_copies, domains.b_intra_copies)),
      .c = mean(domains.c_copies),
      .e = mean(domains.e_copies)};
  return copies;
}

}  // namespace epsweep
