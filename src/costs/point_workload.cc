#include "costs/point_workload.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/error.h"
#include "costs/uniform_ffn.h"
#include "workload/placement_traces.h"

namespace epsweep {
namespace {

void add(FfnWork& total, const FfnWork& part) {
  total.routed_rows += part.routed_rows;
  total.touched_experts += part.touched_experts;
  total.flops += part.flops;
  total.weight_bytes += part.weight_bytes;
  total.weight_scale_bytes += part.weight_scale_bytes;
}

void add(DomainTraffic& total, const DomainTraffic& layer) {
  total.c_copies += layer.c_copies;
  total.e_copies += layer.e_copies;
  total.a_intra_copies += layer.a_intra_copies;
  total.b_intra_copies += layer.b_intra_copies;
}

void add(Traffic& total, const Traffic& layer) {
  total.row_bytes = layer.row_bytes;
  total.a_copies += layer.a_copies;
  total.a_self_copies += layer.a_self_copies;
  total.b_copies += layer.b_copies;
  total.b_self_copies += layer.b_self_copies;
  total.d_copies += layer.d_copies;
  if (layer.domains.has_value()) {
    if (!total.domains.has_value()) total.domains.emplace();
    add(*total.domains, *layer.domains);
  }
  total.max_remote_rows_sent = std::max(total.max_remote_rows_sent, layer.max_remote_rows_sent);
  total.max_remote_rows_received =
      std::max(total.max_remote_rows_received, layer.max_remote_rows_received);
  total.max_d_copies_sent = std::max(total.max_d_copies_sent, layer.max_d_copies_sent);
  total.max_d_copies_received = std::max(total.max_d_copies_received, layer.max_d_copies_received);
}

// A layer of the trace that the point's twin draws, under the point's placement.
struct DrawnLayer {
  LayerRows rows;
  std::vector<std::int32_t> first_experts;  // of the first tokens
};

// Enough that two different streams of tokens do not begin alike.
constexpr std::int64_t kTokensToTell = 64;

std::vector<std::int32_t> first_experts(const Trace& trace) {
  const std::int64_t tokens = std::min(trace.num_tokens, kTokensToTell);
  return {trace.experts.begin(), trace.experts.begin() + tokens * trace.top_k};
}

DrawnLayer draw_layer(const SweepPoint& twin, int layer, const Placement& placement,
                      TraceCache& traces) {
  const Trace& trace = traces.of(twin, layer);
  return {.rows = {.per_expert = rows_per_expert(trace),
                   .per_rank = sum_by_rank(placement, rows_per_slot(placement, trace))},
          .first_experts = first_experts(trace)};
}

// Whether one is the beginning of the other.
bool begin_alike(const std::vector<std::int32_t>& a, const std::vector<std::int32_t>& b) {
  return std::equal(
      a.begin(), a.begin() + static_cast<std::ptrdiff_t>(std::min(a.size(), b.size())), b.begin());
}

// The layers' searches are over: their traces were drawn.
std::optional<RealisedSkew> realised_skew(const SweepPoint& point) {
  const std::optional<double> asked = asked_max_over_mean(point.routing);
  if (!asked) return std::nullopt;
  RealisedSkew skew{.asked = *asked, .param = skew_param(point)};
  for (int layer = 0; layer < point.layers; ++layer) {
    const std::optional<SolvedSkew> solved = solved_skew(point, layer);
    if (!solved) return std::nullopt;  // no tokens
    skew.values.push_back(solved->param);
    skew.max_over_mean.push_back(solved->max_over_mean);
  }
  return skew;
}

}  // namespace

std::optional<KnownPlaces> places_from_topology(const SweepPoint& point) {
  std::optional<GroupPlaces> places = declared_places(point);
  if (!places.has_value()) return std::nullopt;
  return KnownPlaces{std::move(*places), PlacesFrom::declared};
}

PointWorkloadSum::PointWorkloadSum(const SweepPoint& point, std::optional<KnownPlaces> places)
    : point_(point), tokens_of_rank_(token_ranges(point)), score_(point) {
  sum_.ffn_of_rank.resize(static_cast<std::size_t>(point.ep_size));
  sum_.places = std::move(places);
  sum_.placement_fitted_on = placement_fitted_on(point);
  const auto elsewhere = [&point](SweepPoint twin) {
    const bool is_own = trace_key(twin) == trace_key(point);
    return is_own ? std::nullopt : std::optional(std::move(twin));
  };
  if (point.fit_on.has_value()) fitted_twin_ = elsewhere(fitted_point(point));
  if (point.judge_on.has_value()) judged_twin_ = elsewhere(judged_point(point));
}

void PointWorkloadSum::add_layer(const Trace& trace, const Placement& placement) {
  const std::int64_t row_bytes = point_.model.expert_io_dim * bytes_of(row_dtype(point_.dtype));
  const LayerCounts counts = count_layer(trace, placement, tokens_of_rank_, row_bytes,
                                         sum_.places ? &sum_.places->group : nullptr);
  const std::vector<std::int64_t>& rows = counts.rows_per_slot;
  sum_.rows_per_expert.push_back(rows_per_expert(trace));
  sum_.rows_per_rank.push_back(sum_by_rank(placement, rows));
  max_recv_rows_ = std::max(max_recv_rows_, std::ranges::max(sum_.rows_per_rank.back()));
  most_pair_rows_ = std::max(most_pair_rows_, counts.most_pair_rows);
  own_first_experts_ = first_experts(trace);
  routing_.add(routing_checksum(trace));
  add(sum_.traffic, counts.traffic);
  sum_.send_matrix.resize(counts.send_matrix.size(), 0);
  std::ranges::transform(sum_.send_matrix, counts.send_matrix, sum_.send_matrix.begin(),
                         std::plus<>());
  add(sum_.ffn, ffn_work(point_.model, point_.dtype, rows));
  sum_.ffn_of_routing.push_back(ffn_work_of_ranks(point_, placement, rows));
  for (std::size_t rank = 0; rank < sum_.ffn_of_rank.size(); ++rank) {
    add(sum_.ffn_of_rank[rank], sum_.ffn_of_routing.back()[rank]);
  }
  const Traffic& moved = counts.traffic;
  sum_.busiest_a_rows.push_back(
      std::max(moved.max_remote_rows_sent, moved.max_remote_rows_received));
  sum_.busiest_d_copies.push_back(std::max(moved.max_d_copies_sent, moved.max_d_copies_received));
  if (point_.exchange_unit == ExchangeUnit::rank) {
    const LayerCopies layer = count_copies(trace, placement, tokens_of_rank_, row_bytes);
    max_copies_ = {.sent = std::max(max_copies_.sent, layer.max_sent),
                   .received = std::max(max_copies_.received, layer.max_received)};
    sum_.metadata_bytes += layer.metadata_bytes;
  }
  // Layers differ in which experts a rank has, not in how many.
  if (!sum_.slots_per_rank.empty()) return;
  for (const std::vector<int>& experts : placement.experts_of_rank) {
    sum_.slots_per_rank.push_back(static_cast<std::int64_t>(experts.size()));
  }
}

void PointWorkloadSum::score_layer(const Placement& placement, TraceCache& traces) {
  const int layer = score_.num_layers();
  EPS_EXPECT(sum_.rows_per_rank.size() == static_cast<std::size_t>(layer) + 1,
             "a layer is scored right after it was added");
  const auto layer_of = [&](const std::optional<SweepPoint>& twin) {
    if (twin.has_value()) return draw_layer(*twin, layer, placement, traces);
    return DrawnLayer{.rows = {sum_.rows_per_expert.back(), sum_.rows_per_rank.back()},
                      .first_experts = own_first_experts_};
  };
  const DrawnLayer judged = layer_of(judged_twin_);
  if (!is_fitted(point_)) return score_.add_layer(placement, judged.rows, std::nullopt);
  const DrawnLayer fitted = layer_of(fitted_twin_);
  if (!begin_alike(judged.first_experts, fitted.first_experts)) seen_before_ = SeenBefore::no;
  score_.add_layer(placement, judged.rows, fitted.rows);
}

PointWorkload PointWorkloadSum::finish(std::int64_t capacity_rows) {
  EPS_EXPECT(sum_.rows_per_rank.size() == static_cast<std::size_t>(point_.num_routings()),
             "another number of routings than the point has");
  sum_.weight_bytes_per_rank =
      weight_bytes_per_rank(point_.model, point_.dtype, sum_.slots_per_rank);
  sum_.capacity_rows = capacity_rows;
  sum_.memory = memory_need(point_, std::ranges::max(sum_.slots_per_rank), max_recv_rows_,
                            max_copies_, capacity_rows);
  sum_.routing_checksum = routing_.value();
  if (score_.num_layers() > 0) sum_.placement_score = score_.finish(seen_before_);
  sum_.realised_skew = realised_skew(point_);
  return std::move(sum_);
}

}  // namespace epsweep
