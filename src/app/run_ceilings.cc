#include "app/run_ceilings.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/host_probe.h"
#include "base/statistics.h"

namespace epsweep {
namespace {

// For one kernel, and for one ladder: what a rank may spend before a sweep begins.
constexpr double kGemmBudget_s = 0.3;
constexpr double kExchangeBudget_s = 0.3;
constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();

// How rates travel to rank 0.
enum StreamValue { kStreamed, kCache, kRead, kCopy, kLaunch, kNumStreamValues };
enum GemmValue { kRate, kKernel, kSize, kNumGemmValues };

std::optional<double> present(double value) {
  return std::isnan(value) ? std::nullopt : std::optional(value);
}

std::optional<double> larger(const std::optional<double>& a, const std::optional<double>& b) {
  if (!a || !b) return a ? a : b;
  return std::max(*a, *b);
}

std::optional<double> smaller(const std::optional<double>& a, const std::optional<double>& b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

// The maximum over ranks of every repetition: [rank][value], `count` of them from `first`.
std::vector<double> slowest_rank_s(const std::vector<double>& gathered, std::size_t values_per_rank,
                                   std::size_t first, std::size_t count) {
  std::vector<double> slowest(count, 0);
  for (std::size_t at = first; at < gathered.size(); at += values_per_rank) {
    for (std::size_t i = 0; i < count; ++i) slowest[i] = std::max(slowest[i], gathered[at + i]);
  }
  return slowest;
}

// Of the ranks with the same device together; absent unless all have the rate.
std::optional<double> shared_sum(const std::vector<std::optional<double>>& of_rank,
                                 const std::vector<int>& device_of_rank, std::size_t rank) {
  double sum = 0;
  for (std::size_t other = 0; other < of_rank.size(); ++other) {
    if (device_of_rank[other] != device_of_rank[rank]) continue;
    if (!of_rank[other]) return std::nullopt;
    sum += *of_rank[other];
  }
  return sum;
}

}  // namespace

RunCeilings::LayoutKey RunCeilings::layout_key(const SweepPoint& point) {
  return {point.ep_size, point.mapping, point.groups, point.transport};
}

bool RunCeilings::lacks_rates(const std::vector<int>& world_ranks, DType dtype) const {
  const auto found = rates_.find(world_ranks);
  return found == rates_.end() ||
         std::ranges::find(found->second.dtypes, dtype) == found->second.dtypes.end();
}

bool RunCeilings::lacks_exchange(const SweepPoint& point) const {
  return !exchanges_.contains(layout_key(point));
}

void RunCeilings::measure_rates(Backend& backend, DType dtype, const WorkingRanks& ranks) {
  Together& together = rates_[ranks.world_ranks];
  const bool again = !lacks_rates(ranks.world_ranks, dtype);
  if (together.dtypes.empty() || again) measure_streams(backend, ranks, together.of_rank);
  const double begin_s = monotonic_s();
  const auto gemm = probe_gemm(backend, kernels_, dtype, kGemmBudget_s, ranks.together);
  std::vector<double> own(kNumGemmValues, kAbsent);
  if (gemm) {
    own[kRate] = gemm->flop_per_s;
    own[kKernel] =
        static_cast<double>(std::ranges::find(kernels_, gemm->kernel) - kernels_.begin());
    own[kSize] = static_cast<double>(gemm->size);
  }
  keep_gemm(ranks.comm.gather(std::span<const double>(own), 0), dtype, together.of_rank);
  if (!again) together.dtypes.push_back(dtype);
  took_.gemm_s += monotonic_s() - begin_s;
}

void RunCeilings::measure_streams(Backend& backend, const WorkingRanks& ranks,
                                  std::vector<RankRates>& of_rank) {
  const double begin_s = monotonic_s();
  const StreamRates streams = probe_streams(backend, ranks.together);
  std::vector<double> own(kNumStreamValues);
  own[kStreamed] = static_cast<double>(streams.streamed_bytes);
  own[kCache] = static_cast<double>(streams.last_level_cache_bytes);
  own[kRead] = streams.read_bytes_per_s.value_or(kAbsent);
  own[kCopy] = streams.copy_bytes_per_s.value_or(kAbsent);
  own[kLaunch] = streams.launch_latency_s.value_or(kAbsent);
  const std::vector<double> gathered = ranks.comm.gather(std::span<const double>(own), 0);
  took_.streams_s += monotonic_s() - begin_s;
  of_rank.resize(gathered.size() / kNumStreamValues);
  for (std::size_t rank = 0; rank < of_rank.size(); ++rank) {
    const double* values = gathered.data() + rank * kNumStreamValues;
    StreamRates& kept = of_rank[rank].streams;
    kept.streamed_bytes = static_cast<std::int64_t>(values[kStreamed]);
    kept.last_level_cache_bytes = static_cast<std::int64_t>(values[kCache]);
    kept.read_bytes_per_s = larger(kept.read_bytes_per_s, present(values[kRead]));
    kept.copy_bytes_per_s = larger(kept.copy_bytes_per_s, present(values[kCopy]));
    kept.launch_latency_s = smaller(kept.launch_latency_s, present(values[kLaunch]));
  }
}

void RunCeilings::keep_gemm(const std::vector<double>& gathered, DType dtype,
                            std::vector<RankRates>& of_rank) {
  for (std::size_t rank = 0; rank < of_rank.size(); ++rank) {
    const double* values = gathered.data() + rank * kNumGemmValues;
    if (std::isnan(values[kRate])) continue;
    GemmRate& kept = of_rank[rank].gemm[dtype];
    if (values[kRate] <= kept.flop_per_s) continue;
    kept = {.flop_per_s = values[kRate],
            .kernel = kernels_.at(static_cast<std::size_t>(values[kKernel])),
            .size = static_cast<std::int64_t>(values[kSize])};
  }
}

void RunCeilings::measure_exchange(Backend& backend, Transport& transport, const SweepPoint& point,
                                   const ExchangePlace& place, const WorkingRanks& ranks) {
  const double begin_s = monotonic_s();
  Exchange& exchange = exchanges_[layout_key(point)];
  const ExchangeTimes times =
      probe_exchange(backend, transport, place, kExchangeBudget_s, ranks.together);
  std::vector<double> own = times.count_seconds;
  for (const ExchangeRung& rung : times.ladder) {
    own.insert(own.end(), rung.seconds.begin(), rung.seconds.end());
  }
  const std::vector<double> gathered = ranks.comm.gather(std::span<const double>(own), 0);
  took_.exchange_s += monotonic_s() - begin_s;
  if (gathered.empty()) return;
  const std::size_t repeats = times.count_seconds.size();
  exchange.count_exchange_s = nearest_rank(slowest_rank_s(gathered, own.size(), 0, repeats), 0.5);
  std::vector<ExchangeSample> samples;
  for (std::size_t rung = 0; rung < times.ladder.size(); ++rung) {
    const std::int64_t bytes = times.ladder[rung].bytes_per_peer;
    const std::vector<double> seconds =
        slowest_rank_s(gathered, own.size(), (rung + 1) * repeats, repeats);
    exchange.bytes_per_peer.push_back(bytes);
    exchange.best_s.push_back(std::ranges::min(seconds));
    exchange.median_s.push_back(nearest_rank(seconds, 0.5));
    samples.push_back({.remote_bytes = static_cast<double>(bytes * (place.ep_size - 1)),
                       .seconds = exchange.best_s.back()});
  }
  exchange.line = fit_exchange(samples);
}

std::optional<PointCeilings> RunCeilings::of(const SweepPoint& point,
                                             const std::vector<int>& world_ranks,
                                             const std::vector<int>& device_of_rank) const {
  const auto found = rates_.find(world_ranks);
  if (found == rates_.end()) return std::nullopt;
  EPS_EXPECT(found->second.of_rank.size() == world_ranks.size() &&
                 device_of_rank.size() == world_ranks.size(),
             "ceilings are of the working ranks");
  std::vector<std::optional<double>> flop, read;
  PointCeilings ceilings;
  for (const RankRates& rank : found->second.of_rank) {
    const auto gemm = rank.gemm.find(point.dtype);
    flop.push_back(gemm == rank.gemm.end() ? std::nullopt : std::optional(gemm->second.flop_per_s));
    read.push_back(rank.streams.read_bytes_per_s);
    ceilings.ranks.push_back({.flop_per_s = flop.back(),
                              .read_bytes_per_s = read.back(),
                              .cached = rank.streams.cached()});
  }
  for (std::size_t rank = 0; rank < ceilings.ranks.size(); ++rank) {
    ceilings.ranks[rank].shared_flop_per_s = shared_sum(flop, device_of_rank, rank);
    ceilings.ranks[rank].shared_read_bytes_per_s = shared_sum(read, device_of_rank, rank);
  }
  const auto exchange = exchanges_.find(layout_key(point));
  if (exchange != exchanges_.end()) ceilings.exchange = exchange->second.line;
  return ceilings;
}

}  // namespace epsweep
