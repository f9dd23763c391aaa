#include "sim/exchange_volume.h"

#include "base/dtype.h"
#include "workload/rank_dispatch.h"

namespace epsweep {
namespace {

constexpr std::int64_t kCountBytes = 8;

using LinkKind = std::int64_t LinkBytes::*;

class VolumeSum {
 public:
  explicit VolumeSum(const std::vector<int>& domain_of_rank)
      : domain_of_rank_(domain_of_rank), ranks_(domain_of_rank.size()) {}

  void add(std::size_t from, std::size_t to, std::int64_t bytes) {
    const LinkKind kind = kind_of(from, to);
    ranks_[from].sent.*kind += bytes;
    ranks_[to].received.*kind += bytes;
  }
  std::vector<RankVolume> finish() { return std::move(ranks_); }

 private:
  LinkKind kind_of(std::size_t from, std::size_t to) const {
    if (from == to) return &LinkBytes::self;
    return domain_of_rank_[from] == domain_of_rank_[to] ? &LinkBytes::intra : &LinkBytes::inter;
  }

  const std::vector<int>& domain_of_rank_;
  std::vector<RankVolume> ranks_;
};

// To every rank, from one rank's tokens.
struct SentRows {
  std::vector<std::int64_t> uses, copies;  // letters A and B
};

SentRows rows_of(const Trace& trace, const Placement& placement, TokenRange tokens) {
  const auto num_ranks = static_cast<std::size_t>(placement.ep_size);
  SentRows rows{.uses = std::vector<std::int64_t>(num_ranks),
                .copies = std::vector<std::int64_t>(num_ranks)};
  std::vector<std::int64_t> last_token(num_ranks, -1);
  for (std::int64_t token = tokens.begin; token < tokens.end; ++token) {
    const std::uint64_t hash = replica_hash(token);
    for (const std::int32_t expert : trace.of_token(token)) {
      const std::int32_t slot = placement.slot_table().slot_of(expert, hash);
      const auto rank =
          static_cast<std::size_t>(placement.rank_of_slot[static_cast<std::size_t>(slot)]);
      ++rows.uses[rank];
      if (last_token[rank] != token) ++rows.copies[rank];
      last_token[rank] = token;
    }
  }
  return rows;
}

}  // namespace

LayerVolume layer_volume(const SweepPoint& point, const Trace& trace, const Placement& placement,
                         const std::vector<int>& domain_of_rank) {
  const std::int64_t row_bytes = point.model.expert_io_dim * bytes_of(row_dtype(point.dtype));
  const std::int64_t granule = granule_bytes(row_bytes);
  const bool by_rank = point.exchange_unit == ExchangeUnit::rank;
  VolumeSum counts(domain_of_rank), dispatch(domain_of_rank), combine(domain_of_rank);
  const std::vector<TokenRange> tokens = token_ranges(point);
  for (std::size_t from = 0; from < tokens.size(); ++from) {
    const SentRows rows = rows_of(trace, placement, tokens[from]);
    for (std::size_t to = 0; to < tokens.size(); ++to) {
      counts.add(from, to, kCountBytes * std::ssize(placement.experts_of_rank[to]));
      const std::int64_t moved = (by_rank ? rows.copies : rows.uses)[to] * row_bytes;
      const std::int64_t beside = by_rank ? use_granules(rows.uses[to], granule) * granule : 0;
      dispatch.add(from, to, moved + beside);
      combine.add(to, from, moved);
    }
  }
  return {.count_exchange = counts.finish(),
          .dispatch = dispatch.finish(),
          .combine = combine.finish()};
}

}  // namespace epsweep
