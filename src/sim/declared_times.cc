#include "sim/declared_times.h"

#include <algorithm>

#include "base/error.h"
#include "base/local_copy.h"
#include "costs/ffn_work.h"
#include "costs/roofline.h"
#include "costs/uniform_ffn.h"
#include "report/arrival.h"

namespace epsweep {
namespace {

constexpr double kSPerUs = 1e-6;

double default_flop_per_s(DType dtype) {
  if (dtype == DType::fp8) return kDefaultFp8FlopPerS;
  return dtype == DType::fp8_block128 ? kDefaultFp8BlockFlopPerS : kDefaultFlopPerS;
}

std::vector<int> domains_of_group(const SweepPoint& point, const std::vector<int>& world_ranks) {
  if (!point.topology.declared()) return std::vector<int>(world_ranks.size(), 0);
  return group_places(point.topology, world_ranks).domain_of_rank;
}

// Whom a rank shares its group with.
struct Peers {
  bool intra = false, inter = false;
};
Peers peers_of(const std::vector<int>& domains, std::size_t ep_rank) {
  const auto same = std::ranges::count(domains, domains[ep_rank]);
  return {.intra = same > 1, .inter = same < std::ssize(domains)};
}

double link_s(const LinkCosts& link, std::int64_t sent, std::int64_t received) {
  return link.alpha_us * kSPerUs + static_cast<double>(std::max(sent, received)) / link.bytes_per_s;
}

// All the rows that a rank receives, as if each came from itself.
double local_copy_s(const SimCosts& costs, const RankVolume& volume) {
  const LinkBytes& received = volume.received;
  const std::int64_t bytes = received.self + received.intra + received.inter;
  return link_s(costs.self, bytes, bytes);
}

double exchange_s(const SimCosts& costs, const RankVolume& volume, const Peers& peers) {
  const LinkBytes &sent = volume.sent, &received = volume.received;
  double longest_s = link_s(costs.self, sent.self, received.self);
  if (peers.intra) longest_s = std::max(longest_s, link_s(costs.intra, sent.intra, received.intra));
  if (peers.inter) longest_s = std::max(longest_s, link_s(costs.inter, sent.inter, received.inter));
  return longest_s;
}

// By EP rank.
std::vector<double> ffn_s(const SweepPoint& point, const SimCosts& costs,
                          const Placement& placement,
                          const std::vector<std::int64_t>& rows_per_slot) {
  const FfnRates rates = ffn_rates(point, costs);
  std::vector<double> seconds;
  for (const FfnWork& work : ffn_work_of_ranks(point, placement, rows_per_slot)) {
    seconds.push_back(costs.launch_us * kSPerUs +
                      ffn_times(work, {rates.flop_per_s, rates.weight_bytes_per_s}).seconds());
  }
  return seconds;
}

double slowdown_of(const SimCosts& costs, int world_rank) {
  const auto found = std::ranges::find(costs.ranks, world_rank, &SimCosts::RankCosts::rank);
  return found == costs.ranks.end() ? 1 : found->slowdown;
}

}  // namespace

FfnRates ffn_rates(const SweepPoint& point, const SimCosts& costs) {
  FfnRates rates{.flop_per_s = default_flop_per_s(point.dtype),
                 .weight_bytes_per_s = kDefaultWeightBytesPerS};
  if (point.hardware) {
    const HardwareRates& measured = point.hardware->measured;
    const bool is_fp8 = point.dtype == DType::fp8 || point.dtype == DType::fp8_block128;
    const std::optional<double>& tflops = is_fp8 ? measured.fp8_tflops : measured.bf16_tflops;
    if (tflops) rates.flop_per_s = *tflops * 1e12;
    if (measured.memory_tb_per_s) rates.weight_bytes_per_s = *measured.memory_tb_per_s * 1e12;
  }
  rates.flop_per_s = costs.flop_per_s.value_or(rates.flop_per_s);
  rates.weight_bytes_per_s = costs.weight_bytes_per_s.value_or(rates.weight_bytes_per_s);
  return rates;
}

DeclaredTimesSum::DeclaredTimesSum(const SweepPoint& point, const GroupLayout& layout,
                                   const PredictedCosts& predicted)
    : point_(point),
      costs_(point.sim != nullptr ? *point.sim : SimCosts{}),
      predicted_(predicted),
      tokens_of_rank_(token_ranges(point)) {
  times_.num_layers = point.layers;
  if (point.transport == kLocalCopy) times_.exchanges = Exchanges::local_copies;
  std::vector<std::size_t> domains_of_group_at;
  for (int group = 0; group < layout.num_groups; ++group) {
    std::vector<int> domains = domains_of_group(point, members(layout, group));
    const auto found = std::ranges::find(domains_, domains);
    domains_of_group_at.push_back(static_cast<std::size_t>(found - domains_.begin()));
    if (found == domains_.end()) domains_.push_back(std::move(domains));
  }
  for (std::size_t rank = 0; rank < layout.group_of_rank.size(); ++rank) {
    const int group = layout.group_of_rank[rank];
    if (group < 0) continue;
    times_.world_rank_of_row.push_back(static_cast<int>(rank));
    times_.group_of_row.push_back(group);
    ep_rank_of_row_.push_back(layout.ep_rank_of_rank[rank]);
    domains_of_row_.push_back(domains_of_group_at[static_cast<std::size_t>(group)]);
  }
}

void DeclaredTimesSum::put_row(std::size_t row, const LayerVolume& volume, double ffn_s,
                               double* own_s) const {
  const auto put = [own_s](Stage stage, double seconds) {
    own_s[static_cast<std::size_t>(stage)] = seconds;
  };
  const auto ep_rank = static_cast<std::size_t>(ep_rank_of_row_[row]);
  const Peers peers = peers_of(domains_[domains_of_row_[row]], ep_rank);
  const bool copies = times_.exchanges == Exchanges::local_copies;
  const auto moving_s = [&](const RankVolume& moved) {
    return copies ? local_copy_s(costs_, moved) : exchange_s(costs_, moved, peers);
  };
  put(Stage::count_exchange, moving_s(volume.count_exchange[ep_rank]));
  put(Stage::dispatch, moving_s(volume.dispatch[ep_rank]));
  put(Stage::combine, moving_s(volume.combine[ep_rank]));
  put(Stage::expert_ffn, ffn_s);
  const double slowdown = slowdown_of(costs_, times_.world_rank_of_row[row]);
  for (std::size_t s = 0; s < kNumStages; ++s) {
    const bool replaced = copies && is_exchange(static_cast<Stage>(s));
    if (costs_.stage_us[s] && !replaced) own_s[s] = *costs_.stage_us[s] * kSPerUs;
    own_s[s] *= slowdown;
  }
}

void DeclaredTimesSum::add_slow_links(double* own_s) const {
  const std::vector<int>& rank_of_row = times_.world_rank_of_row;
  const auto row_of = [&rank_of_row](int rank) {
    return static_cast<std::size_t>(std::ranges::find(rank_of_row, rank) - rank_of_row.begin());
  };
  for (const SimCosts::SlowLink& link : costs_.links) {
    const std::size_t a = row_of(link.a), b = row_of(link.b);
    if (std::max(a, b) >= rank_of_row.size()) continue;  // an idle end
    if (times_.group_of_row[a] != times_.group_of_row[b]) continue;
    for (const std::size_t row : {a, b}) {
      for (const Stage stage : {Stage::dispatch, Stage::combine}) {
        own_s[row * kNumStages + static_cast<std::size_t>(stage)] += link.extra_us * kSPerUs;
      }
    }
  }
}

std::vector<double> DeclaredTimesSum::ffn_of_ranks(const Placement& placement,
                                                   const std::vector<std::int64_t>& rows_per_slot) {
  if (predicted_.shards != nullptr) {
    return std::vector<double>(static_cast<std::size_t>(placement.ep_size), 0);
  }
  if (predicted_.costs == nullptr) return ffn_s(point_, costs_, placement, rows_per_slot);
  std::vector<double> seconds;
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(placement.ep_size); ++rank) {
    const auto first = rows_per_slot.begin() + placement.first_slot_of_rank[rank];
    const auto last = rows_per_slot.begin() + placement.first_slot_of_rank[rank + 1];
    const std::vector<std::int64_t> rows(first, last);
    const std::optional<FfnForecast> forecast = predicted_.costs->ffn.forecast(rows);
    EPS_EXPECT(forecast.has_value(), "a prediction without a table of expert FFNs");
    seconds.push_back(at_bound(forecast->time, predicted_.bound));
    distance_.ffn_doublings = std::max(distance_.ffn_doublings, forecast->time.doublings);
    distance_.ffn_basis = std::max(distance_.ffn_basis, forecast->basis);
  }
  return seconds;
}

// Of the routing at hand.
void DeclaredTimesSum::put_measured(std::size_t row, double* own_s) const {
  for (std::size_t s = 0; s < kNumStages; ++s) {
    const auto stage = static_cast<Stage>(s);
    if (!is_own_stage(stage)) continue;
    const StageSpan span = predicted_.shards->at(times_.num_routings, ep_rank_of_row_[row], stage);
    own_s[s] = predicted_.bound == Bound::low    ? span.low_s
               : predicted_.bound == Bound::high ? span.high_s
                                                 : span.seconds;
  }
}

void DeclaredTimesSum::predict_row(std::size_t row, const LayerVolume& volume, double ffn_s,
                                   double* own_s) {
  const StageCosts& costs = *predicted_.costs;
  const auto ep_rank = static_cast<std::size_t>(ep_rank_of_row_[row]);
  const Peers peers = peers_of(domains_[domains_of_row_[row]], ep_rank);
  const auto tokens = static_cast<double>(tokens_of_rank_[ep_rank].size());
  const bool alone = point_.ep_size == 1;
  for (std::size_t s = 0; s < kNumStages; ++s) {
    const std::optional<StageLine>& line = costs.by_tokens[s];
    own_s[s] = line ? line->predict_s(tokens) : 0;
  }
  own_s[static_cast<std::size_t>(Stage::expert_ffn)] = ffn_s;
  if (alone) return;
  const auto exchange = [&](const ExchangeModel& model, const RankVolume& moved) {
    const auto most = [&moved](std::int64_t LinkBytes::*kind) {
      return static_cast<double>(std::max(moved.sent.*kind, moved.received.*kind));
    };
    const ExchangeForecast forecast = forecast_exchange(
        model, {.ep_size = point_.ep_size,
                .reach = peers.inter ? Reach::across_domains : Reach::within_domain,
                .bytes = {.intra = most(&LinkBytes::intra), .inter = most(&LinkBytes::inter)}});
    EPS_EXPECT(forecast.time.has_value(), forecast.refusal);
    distance_.exchange_doublings = std::max(distance_.exchange_doublings, forecast.time->doublings);
    return at_bound(*forecast.time, predicted_.bound);
  };
  own_s[static_cast<std::size_t>(Stage::dispatch)] =
      exchange(costs.dispatch, volume.dispatch[ep_rank]);
  own_s[static_cast<std::size_t>(Stage::combine)] =
      exchange(costs.combine, volume.combine[ep_rank]);
  double& counts_s = own_s[static_cast<std::size_t>(Stage::count_exchange)];
  counts_s = 0;
  if (!costs.count_by_peers) return;
  const double doublings =
      doublings_outside(point_.ep_size, costs.narrowest_count, costs.widest_count);
  const double predicted_s = costs.count_by_peers->predict_s(point_.ep_size - 1);
  counts_s = at_bound(forecast_of(predicted_s, doublings, kExchangeError), predicted_.bound);
}

void DeclaredTimesSum::add_layer(const Trace& trace, const Placement& placement) {
  std::vector<LayerVolume> volumes;
  for (const std::vector<int>& domains : domains_) {
    volumes.push_back(layer_volume(point_, trace, placement, domains));
  }
  const std::vector<double> ffn = ffn_of_ranks(placement, rows_per_slot(placement, trace));
  const std::size_t begin = times_.own_s.size(), num_rows = times_.group_of_row.size();
  times_.own_s.resize(begin + num_rows * kNumStages, kDefaultLocalStageUs * kSPerUs);
  double* const own_s = times_.own_s.data() + begin;
  for (std::size_t row = 0; row < num_rows; ++row) {
    const LayerVolume& volume = volumes[domains_of_row_[row]];
    const double ffn_s = ffn[static_cast<std::size_t>(ep_rank_of_row_[row])];
    if (predicted_.costs != nullptr) {
      predict_row(row, volume, ffn_s, own_s + row * kNumStages);
    } else {
      put_row(row, volume, ffn_s, own_s + row * kNumStages);
    }
    if (predicted_.shards != nullptr) put_measured(row, own_s + row * kNumStages);
  }
  const bool over_links = times_.exchanges == Exchanges::between_ranks;
  if (predicted_.costs == nullptr && over_links) add_slow_links(own_s);
  ++times_.num_routings;
}

}  // namespace epsweep
