#include "app/virtual_ranks.h"

#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/format.h>

#include "app/launch_facts.h"
#include "app/signals.h"
#include "base/error.h"
#include "base/host_probe.h"
#include "base/log.h"
#include "costs/memory.h"
#include "mpi/environment.h"
#include "pipeline/absent_peers.h"
#include "pipeline/dtype_refusal.h"
#include "pipeline/shard_pass.h"
#include "workload/placement_traces.h"

namespace epsweep {
namespace {

constexpr std::int64_t kNoMorePoints = -1;
constexpr double kUsPerS = 1e6;

void end_hung(const Comm& world, double limit_s, const std::string& where) {
  log::error(
      fmt::format("rank {} of {} has been in one phase for {:.0f} s: {}; it or a rank it waits for "
                  "hangs; ending the run",
                  world.rank(), world.size(), limit_s, where));
  abort_world(static_cast<int>(ExitCode::failure));
}

ShardIterations iterations_of(const SweepPoint& point, const VirtualSettings& settings) {
  return {.warmup = std::max(1, point.warmup),
          .timed = std::max(1, std::min(point.iterations, settings.iterations))};
}

std::size_t times_per_iteration(const SweepPoint& point) {
  return static_cast<std::size_t>(point.num_routings()) * kNumStages;
}

// seconds: [iterations][routings][stages].
MeasuredShard shard_of(int ep_rank, const SweepPoint& point, std::span<const double> seconds) {
  MeasuredShard shard{.ep_rank = ep_rank, .of_routing = {}};
  const std::size_t stride = times_per_iteration(point);
  for (std::size_t routing = 0; routing < stride / kNumStages; ++routing) {
    auto& stages = shard.of_routing.emplace_back();
    for (std::size_t s = 0; s < kNumStages; ++s) {
      if (!is_own_stage(static_cast<Stage>(s))) continue;
      std::vector<double> samples;
      for (std::size_t at = routing * kNumStages + s; at < seconds.size(); at += stride) {
        samples.push_back(seconds[at]);
      }
      stages[s] = span_of(samples);
    }
  }
  return shard;
}

Json shard_json(const VirtualShards& shards, const MeasuredShard& shard) {
  Json layers = Json::array();
  for (std::size_t routing = 0; routing < shard.of_routing.size(); ++routing) {
    const ShardLoad& load = shards.load(static_cast<int>(routing), shard.ep_rank);
    const StageSpan& ffn = shard.of_routing[routing][static_cast<std::size_t>(Stage::expert_ffn)];
    layers.push_back({{"rows", load.rows},
                      {"active_slots", load.slots},
                      {"p50_us", ffn.seconds * kUsPerS},
                      {"low_us", ffn.low_s * kUsPerS},
                      {"high_us", ffn.high_s * kUsPerS}});
  }
  return {{"ep_rank", shard.ep_rank}, {"expert_ffn", std::move(layers)}};
}

Json facts_of(const VirtualShards& shards, int num_present, int iterations) {
  Json measured = Json::array();
  for (const MeasuredShard& shard : shards.measured()) {
    measured.push_back(shard_json(shards, shard));
  }
  return {{"ep_size", shards.ep_size()},
          {"present_ranks", num_present},
          {"iterations", iterations},
          {"shards", std::move(measured)}};
}

}  // namespace

ShardLoads shard_loads(const SweepPoint& point, TraceCache& traces) {
  ShardLoads loads;
  for (int routing = 0; routing < point.num_routings(); ++routing) {
    const int layer = point.layer_of(routing);
    const Placement placement = place_experts(point, layer, rows_to_fit(point, layer, traces));
    const std::vector<std::int64_t> rows =
        rows_per_slot(placement, traces.of(at_step_of(point, routing), layer));
    std::vector<ShardLoad>& of_rank = loads.emplace_back(static_cast<std::size_t>(point.ep_size));
    for (std::size_t slot = 0; slot < rows.size(); ++slot) {
      ShardLoad& load = of_rank[static_cast<std::size_t>(placement.rank_of_slot[slot])];
      load.rows += rows[slot];
      load.slots += rows[slot] > 0 ? 1 : 0;
    }
  }
  return loads;
}

RoundPlace place_in_round(std::size_t round, std::size_t present_rank, std::size_t num_present,
                          std::size_t num_shards) {
  const std::size_t turn = round * num_present + present_rank;
  return {.shard = turn % num_shards, .counts = turn < num_shards};
}

VirtualRanks::VirtualRanks(const Comm& world, const HostMap& hosts, RankBackend backend,
                           const VirtualSettings& settings)
    : world_(world),
      hosts_(hosts),
      settings_(settings),
      backend_(std::move(backend.backend)),
      device_ids_(std::move(backend.device_ids)),
      watchdog_(settings.phase_limit_s,
                [&world, limit_s = settings.phase_limit_s](const std::string& where) {
                  end_hung(world, limit_s, where);
                }) {
  watchdog_.rest();
}

LoadFacts VirtualRanks::load() const {
  std::vector<int> present(static_cast<std::size_t>(world_.size()));
  std::iota(present.begin(), present.end(), 0);
  const CoreShare share = busiest_host(hosts_, present);
  return {.ranks = share.ranks,
          .cores = share.cores,
          .ranks_per_device = ranks_on_busiest_device(hosts_, device_ids_, present),
          .foreign_load = std::nullopt};
}

// What rank 0 says, on every rank.
std::int64_t VirtualRanks::told(std::int64_t index) const {
  world_.patient_barrier();
  std::array<std::int64_t, 1> shared = {index};
  world_.broadcast(std::span(shared), 0);
  return shared[0];
}

VirtualPoint VirtualRanks::measure(const SweepPoint& point) {
  told(point.index);
  return measure_on_all(point);
}

void VirtualRanks::dismiss() {
  told(kNoMorePoints);
}

void VirtualRanks::follow(const Plan& plan) {
  for (;;) {
    const std::int64_t index = told(kNoMorePoints);
    if (index == kNoMorePoints) return;
    measure_on_all(plan.points.at(static_cast<std::size_t>(index)));
  }
}

Json VirtualRanks::provenance(const std::vector<std::string>& argv) const {
  return provenance_json(hosts_, backend_->describe(), device_ids_, argv);
}

std::string VirtualRanks::refusal_of(const RankWork& work) const {
  const std::string dtype = dtype_refusal(work.point.dtype, backend_->describe()).value_or("");
  return dtype.empty() ? kernel_refusal(work) : dtype;
}

std::string VirtualRanks::missing_of(const RankWork& work) const {
  MemoryNeed need =
      memory_need(work.point, work.num_own_slots(), work.max_recv_rows(),
                  {.sent = work.max_sent_copies(), .received = work.max_recv_copies()});
  need.activation_bytes += absent_peer_bytes(work);
  need.kernel_scratch_bytes =
      kernel_scratch_bytes(work, GroupedGemmCatalog::instance().at(work.point.grouped_gemm));
  const auto missing = memory_shortfall(need, backend_->describe().memory_bytes);
  return missing ? fmt::format("the shard of EP rank {} {}", work.ep_rank, *missing) : "";
}

void VirtualRanks::prepare_weights_of(const RankWork& work) {
  if (weights_ && weights_->key == weights_key(work)) return;
  weights_.reset();  // before the next set is made: both need not fit
  const GroupedGemmEntry& entry = GroupedGemmCatalog::instance().at(work.point.grouped_gemm);
  const int num_threads = backend_->describe().num_threads;
  weights_ = prepare_weights(work, *backend_, [&entry, num_threads](const GemmShape& shape) {
    return entry.make(shape, num_threads);
  });
}

int VirtualRanks::agreed_signal() const {
  return static_cast<int>(world_.all_max(noted_signal()));
}

VirtualRanks::Timed VirtualRanks::time(const RankWork& work) {
  const SweepPoint& point = work.point;
  const std::string label = fmt::format(" (EP rank {} of {})", work.ep_rank, point_label(point));
  watchdog_.enter("preparing weights" + label);
  prepare_weights_of(work);
  watchdog_.enter("waiting for the other ranks" + label);
  world_.patient_barrier();
  Timed timed;
  const double begin_s = monotonic_s(), cpu_s = process_cpu_s();
  const std::optional<double> busy_s = host_busy_cpu_s();
  timed.seconds = time_shard(
      work, *backend_, *weights_, iterations_of(point, settings_),
      {.align = [this] { world_.barrier(); },
       .stop = [this] { return agreed_signal() != 0; },
       .enter_phase = [&](const std::string& phase) { watchdog_.enter(phase + label); }});
  timed.load.wall_s = monotonic_s() - begin_s;
  timed.load.own_cpu_s = process_cpu_s() - cpu_s;
  if (const auto now_s = host_busy_cpu_s(); now_s && busy_s) {
    timed.load.host_busy_s = *now_s - *busy_s;
  }
  return timed;
}

void VirtualRanks::gather_load(const LoadSample& own, VirtualPoint& result) const {
  constexpr double kUnknown = -1;
  constexpr std::size_t kValues = 3;
  const std::array<double, kValues> values = {own.wall_s, own.own_cpu_s,
                                              own.host_busy_s.value_or(kUnknown)};
  const std::vector<double> all = world_.gather(std::span<const double>(values), 0);
  std::vector<RankLoad> loads;
  for (std::size_t at = 0; at < all.size(); at += kValues) {
    const double busy_s = all[at + 2];
    loads.push_back({.rank = static_cast<int>(at / kValues),
                     .wall_s = all[at],
                     .own_cpu_s = all[at + 1],
                     .host_busy_s = busy_s < 0 ? std::nullopt : std::optional(busy_s)});
  }
  if (const auto load = foreign_load(hosts_, loads, num_online_cores())) {
    result.foreign_load = std::max(result.foreign_load.value_or(0), *load);
  }
}

// One rank each takes the place of. Ranks differ in memory and may in what they can compute, so all
// hear the first one's refusal.
void VirtualRanks::measure_round(const SweepPoint& point, const std::vector<int>& ranks,
                                 std::size_t round, VirtualPoint& result,
                                 std::vector<MeasuredShard>& measured) {
  const auto present = static_cast<std::size_t>(world_.size());
  const auto place_of = [&](std::size_t rank) {
    return place_in_round(round, rank, present, ranks.size());
  };
  watchdog_.enter("planning a shard (" + point_label(point) + ")");
  const int own_rank = ranks[place_of(static_cast<std::size_t>(world_.rank())).shard];
  const RankWork work = plan_rank_work(point, own_rank, traces_);
  result.refusal = world_.first_text(refusal_of(work));
  if (result.refusal.empty()) result.missing_memory = world_.first_text(missing_of(work));
  if (!result.can_run()) return;
  const Timed timed = time(work);
  if (timed.seconds.empty()) {
    result.stop_signal = agreed_signal();
    return;
  }
  const std::vector<double>& own = timed.seconds;
  const std::vector<double> all = world_.gather(std::span<const double>(own), 0);
  gather_load(timed.load, result);
  if (world_.rank() != 0) return;
  for (std::size_t rank = 0; rank < present; ++rank) {
    const RoundPlace place = place_of(rank);
    if (!place.counts) continue;
    measured.push_back(
        shard_of(ranks[place.shard], point, std::span(all).subspan(rank * own.size(), own.size())));
  }
}

// Whatever a rank stumbles over now, the others do not know of: it must end them all.
VirtualPoint VirtualRanks::measure_on_all(const SweepPoint& point) {
  try {
    return measure_shards(point);
  } catch (const ConfigError& error) {
    throw RunError(error.what());
  }
}

VirtualPoint VirtualRanks::measure_shards(const SweepPoint& point) {
  watchdog_.enter("planning shards (" + point_label(point) + ")");
  VirtualPoint result;
  ShardLoads loads = shard_loads(point, traces_);
  const std::vector<int> ranks =
      shards_to_measure(loads, settings_.most_shards.value_or(point.ep_size));
  const auto present = static_cast<std::size_t>(world_.size());
  const std::size_t num_rounds = (ranks.size() + present - 1) / present;
  std::vector<MeasuredShard> measured;
  for (std::size_t round = 0; round < num_rounds && result.can_run(); ++round) {
    measure_round(point, ranks, round, result, measured);
  }
  watchdog_.rest();
  if (world_.rank() != 0 || !result.can_run()) return result;
  std::vector<std::int64_t> tokens;
  for (const TokenRange& range : token_ranges(point)) tokens.push_back(range.size());
  result.shards.emplace(std::move(loads), std::move(tokens), std::move(measured));
  result.facts = facts_of(*result.shards, world_.size(), iterations_of(point, settings_).timed);
  return result;
}

}  // namespace epsweep
