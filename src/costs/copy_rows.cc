#include "costs/copy_rows.h"

#include <algorithm>

#include "workload/rank_dispatch.h"

namespace epsweep {
namespace {

// What one source sends.
struct SourceCounts {
  std::vector<std::int64_t> copies, uses;  // to every rank
};

SourceCounts count_source(const Trace& trace, const Placement& placement, TokenRange tokens) {
  const auto ranks = static_cast<std::size_t>(placement.ep_size);
  SourceCounts counts{.copies = std::vector<std::int64_t>(ranks),
                      .uses = std::vector<std::int64_t>(ranks)};
  std::vector<std::int64_t> last_token(ranks, -1);
  for (std::int64_t token = tokens.begin; token < tokens.end; ++token) {
    for (const std::int32_t expert : trace.of_token(token)) {
      const auto rank = static_cast<std::size_t>(placement.rank_of(expert, token));
      ++counts.uses[rank];
      if (last_token[rank] == token) continue;
      last_token[rank] = token;
      ++counts.copies[rank];
    }
  }
  return counts;
}

}  // namespace

LayerCopies count_copies(const Trace& trace, const Placement& placement,
                         const std::vector<TokenRange>& tokens_of_rank, std::int64_t row_bytes) {
  const std::int64_t granule = granule_bytes(row_bytes);
  LayerCopies layer;
  std::vector<std::int64_t> received(static_cast<std::size_t>(placement.ep_size));
  for (const TokenRange tokens : tokens_of_rank) {
    const SourceCounts source = count_source(trace, placement, tokens);
    std::int64_t sent = 0;
    for (std::size_t rank = 0; rank < received.size(); ++rank) {
      sent += source.copies[rank];
      received[rank] += source.copies[rank];
      layer.metadata_bytes += use_granules(source.uses[rank], granule) * granule;
    }
    layer.max_sent = std::max(layer.max_sent, sent);
  }
  layer.max_received = std::ranges::max(received);
  return layer;
}

}  // namespace epsweep
