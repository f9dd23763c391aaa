// How token rows get to their experts and results back: the steps that differ between exchange
// units.
#pragma once

#include <concepts>
#include <cstdint>

#include "device/backend.h"
#include "device/transport.h"
#include "pipeline/layer_indices.h"
#include "pipeline/rank_work.h"
#include "pipeline/row_counts.h"

namespace epsweep {

// What an exchange works with; it outlives the exchange.
struct ExchangeContext {
  const RankWork& work;
  Backend& backend;
  Transport& transport;
  Lane& lane;
  const std::vector<LayerIndices>& indices;  // [routings]

  // Of a row as it travels and as experts take it.
  std::int64_t row_bytes() const {
    return work.point.model.expert_io_dim * bytes_of(row_dtype(work.point.dtype));
  }
};

// A layer calls every step once and in this order; the comment names the stage that pays for it.
// Constructors allocate everything, steps nothing.
template <typename Path>
concept ExchangePath = requires(Path path, const Path& constant, int routing, const Buffer& tokens,
                                const Buffer& weights, Buffer& out) {
  // count_exchange. Of exact capacity it blocks until the lane has done everything so far, the
  // router included.
  path.announce(routing);
  // permute. tokens: [own tokens][hidden_dim]; weights: fp32 [own tokens][top_k].
  path.pack(tokens, weights);
  // dispatch.
  path.send();
  // expert_ffn, first: the rows in expert order, and where their results belong.
  { path.expert_input() } -> std::same_as<const Buffer&>;
  { path.expert_output() } -> std::same_as<Buffer&>;
  // expert_ffn, last.
  path.collect();
  // combine.
  path.send_back();
  // unpermute. out: fp32 [own tokens][expert_io_dim].
  path.add_up(weights, out);

  { constant.counts() } -> std::same_as<const RowCounts&>;
  // Whether what was exchanged about the rows is what the dispatch plan says.
  { constant.counts_match_plan(routing) } -> std::same_as<bool>;
  path.poison();
};

}  // namespace epsweep
