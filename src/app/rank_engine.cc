#include "app/rank_engine.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include <fmt/format.h>

#include "app/signals.h"
#include "base/error.h"
#include "base/host_probe.h"
#include "base/log.h"
#include "base/text.h"
#include "costs/memory.h"
#include "mpi/environment.h"
#include "pipeline/dtype_refusal.h"
#include "pipeline/exchange_refusal.h"
#include "pipeline/local_copy.h"
#include "report/point_record.h"

namespace epsweep {
namespace {

EpGroupCache::Key layout_key(const SweepPoint& point) {
  return {point.ep_size, static_cast<int>(point.mapping), static_cast<int>(point.groups)};
}

EpGroupCache::Place place_in(const GroupLayout& layout, int rank) {
  const auto at = static_cast<std::size_t>(rank);
  return {.group = layout.group_of_rank[at],
          .ep_rank = layout.ep_rank_of_rank[at],
          .num_groups = layout.num_groups};
}

void end_hung_run(const Comm& world, double limit_s, const std::string& where) {
  log::error(fmt::format(
      "rank {} of {} has been in one phase for {:.0f} s: {}; it or a rank it waits for hangs; "
      "ending the run",
      world.rank(), world.size(), limit_s, where));
  abort_world(static_cast<int>(ExitCode::failure));
}

// Empty unless a delay is among them. Sleeps, as the other ranks may need the core.
std::function<void(int, Stage, DelayPlace)> delay_of(const std::vector<Fault>& faults) {
  const bool delayed = std::ranges::any_of(
      faults, [](const Fault& fault) { return fault.kind == FaultKind::delay; });
  if (!delayed) return {};
  return [&faults](int iteration, Stage stage, DelayPlace place) {
    const std::int64_t us = delay_us(faults, iteration, stage, place);
    if (us > 0) std::this_thread::sleep_for(std::chrono::microseconds(us));
  };
}

// The backend's default and what the experiment names.
std::vector<std::string> ceiling_kernels(const RunSettings& settings) {
  std::vector<std::string> kernels = settings.kernels;
  const std::string& own =
      BackendCatalog::instance().at(settings.devices.backend).default_grouped_gemm;
  if (std::ranges::find(kernels, own) == kernels.end()) kernels.insert(kernels.begin(), own);
  return kernels;
}

}  // namespace

RankEngine::RankEngine(const Comm& world, RankBackend backend, const RunSettings& settings)
    : world_(world),
      settings_(settings),
      backend_(std::move(backend.backend)),
      device_ids_(std::move(backend.device_ids)),
      groups_(world),
      clock_(clock_with_faults(settings.faults, world.rank())),
      clock_domains_(find_clock_domains(world, clock_)),
      ceilings_(ceiling_kernels(settings)),
      watchdog_(settings.phase_limit_s, [&world, &settings](const std::string& where) {
        end_hung_run(world, settings.phase_limit_s, where);
      }) {}

RankPoint RankEngine::begin(const SweepPoint& point) {
  watchdog_.enter("planning (" + point_label(point) + ")");
  const double begin_s = monotonic_s();
  RankPoint result;
  result.layout = group_layout(world_.size(), point.ep_size, point.mapping, point.groups);
  const EpGroupCache::Place place = place_in(result.layout, world_.rank());
  const EpGroupCache::Key key = layout_key(point);
  result.group = groups_.get(key, place);
  if (!working_.contains(key)) {
    working_.emplace(key, world_.split(result.group == nullptr ? -1 : 0, world_.rank()));
  }
  if (result.group != nullptr) {
    result.work = plan_rank_work(point, place.ep_rank, traces_);
    check_work_agrees(result);
  }
  result.prepare_s = monotonic_s() - begin_s;
  return result;
}

// Ranks draw the same routing and place experts alike by themselves; a library that rounds
// differently on one host would otherwise show as a hang in the exchange.
void RankEngine::check_work_agrees(const RankPoint& rank_point) {
  const RankWork& work = *rank_point.work;
  const Comm& ranks = working_.at(layout_key(work.point));
  const auto compare = [&](std::uint64_t checksum, const char* what) {
    const auto own = static_cast<std::int64_t>(checksum);
    if (ranks.all_min(own) == ranks.all_max(own)) return;
    throw RunError(
        fmt::format("ranks {} for {}: {} here", what, point_label(work.point), hex64(checksum)));
  };
  compare(routing_checksum(work.traces), "drew different routings");
  compare(placement_checksum(work.placements), "placed experts differently");
}

std::string RankEngine::reason_not_to_run(const RankPoint& rank_point) const {
  std::string own;
  if (rank_point.work) {
    const BackendInfo backend = backend_->describe();
    own = dtype_refusal(rank_point.work->point.dtype, backend).value_or("");
    if (own.empty()) own = exchange_refusal(*rank_point.work, backend).value_or("");
    if (own.empty()) own = kernel_refusal(*rank_point.work);
  }
  return world_.first_text(own);
}

std::string RankEngine::memory_shortfall_of(const RankPoint& rank_point) const {
  std::string own;
  if (rank_point.work) {
    const RankWork& work = *rank_point.work;
    MemoryNeed need = memory_need(
        work.point, std::ranges::max(work.slots_of_rank), work.max_recv_rows(),
        {.sent = work.max_sent_copies(), .received = work.max_recv_copies()}, work.capacity_rows);
    need.kernel_scratch_bytes =
        kernel_scratch_bytes(work, GroupedGemmCatalog::instance().at(work.point.grouped_gemm));
    own = memory_shortfall(need, backend_->describe().memory_bytes).value_or("");
  }
  return world_.first_text(own);
}

// Collective, as every rank gets here for the same points. Not before all know that the point can
// run: a transport that refuses may have no communicator to make.
void RankEngine::make_fabric(const SweepPoint& point, const EpGroup* group) {
  const TransportEntry& entry = real_transport(point.transport, backend_->describe().name);
  const std::pair key(layout_key(point), entry.name);
  if (fabrics_.contains(key)) return;
  fabrics_.emplace(key, entry.make_fabric == nullptr ? nullptr : entry.make_fabric(world_, group));
}

std::unique_ptr<Transport> RankEngine::make_transport(const SweepPoint& point,
                                                      const EpGroup& group) {
  const TransportEntry& real = real_transport(point.transport, backend_->describe().name);
  std::unique_ptr<Transport> transport =
      real.make(group, fabrics_.at({layout_key(point), real.name}).get());
  const TransportEntry& asked = TransportCatalog::instance().at(point.transport);
  if (asked.decorate == nullptr) return transport;
  return asked.decorate(std::move(transport), *backend_);
}

RanksTogether RankEngine::together_of(const SweepPoint& point) {
  const Comm& ranks = working_.at(layout_key(point));
  return {.all_max = [&ranks](std::int64_t value) { return ranks.all_max(value); },
          .enter_phase = [this](const std::string& phase) { watchdog_.enter(phase); }};
}

// By the working ranks, before weights take memory.
void RankEngine::measure_ceilings(const SweepPoint& point, const RankPoint& rank_point) {
  if (settings_.ceilings == Ceilings::skip) return;
  const std::vector<int> world_ranks = active_ranks(rank_point.layout);
  const bool lacks_rates = ceilings_.lacks_rates(world_ranks, point.dtype);
  // What replaces an exchange says nothing about how fast exchanges can be.
  const bool exchanges = TransportCatalog::instance().at(point.transport).decorate == nullptr;
  const bool lacks_exchange = exchanges && ceilings_.lacks_exchange(point);
  if (!lacks_rates && !lacks_exchange) return;
  weights_.reset();
  const WorkingRanks ranks = {.comm = working_.at(layout_key(point)),
                              .world_ranks = world_ranks,
                              .together = together_of(point)};
  if (lacks_rates) ceilings_.measure_rates(*backend_, point.dtype, ranks);
  if (!lacks_exchange) return;
  const auto transport = make_transport(point, *rank_point.group);
  ceilings_.measure_exchange(
      *backend_, *transport, point,
      {.ep_size = rank_point.group->ep_size(),
       .ep_rank = rank_point.group->ep_rank(),
       .capacity = TransportCatalog::instance().at(point.transport).capacity},
      ranks);
  transport->close();
}

void RankEngine::measure_rates_again(const RankPoint& rank_point) {
  if (rank_point.work) {
    const SweepPoint& point = rank_point.work->point;
    const std::vector<int> world_ranks = active_ranks(rank_point.layout);
    weights_.reset();
    ceilings_.measure_rates(*backend_, point.dtype,
                            {.comm = working_.at(layout_key(point)),
                             .world_ranks = world_ranks,
                             .together = together_of(point)});
  }
  watchdog_.rest();
  world_.patient_barrier();
  watchdog_.enter("recording");
}

std::vector<Fault> RankEngine::faults_at(const SweepPoint& point) const {
  std::vector<Fault> faults = settings_.faults;
  std::erase_if(faults,
                [&](const Fault& fault) { return !fault.applies(world_.rank(), point.ep_size); });
  return faults;
}

void RankEngine::prepare_weights_of(const RankPoint& rank_point) {
  const RankWork& work = *rank_point.work;
  const std::vector<Fault> faults = faults_at(work.point);
  if (weights_ && weights_->key == weights_key(work) && settings_.faults.empty()) return;
  weights_.reset();  // before the next set is made: both need not fit
  const GroupedGemmEntry& entry = GroupedGemmCatalog::instance().at(work.point.grouped_gemm);
  const int num_threads = backend_->describe().num_threads;
  weights_ = prepare_weights(work, *backend_, [&](const GemmShape& shape) {
    return with_faults(entry.make(shape, num_threads), shape, faults, *backend_);
  });
}

// Next to what is timed, as clocks drift; collective over the world, idle ranks included.
ClockAlignment RankEngine::align_when_all_come(PointClock& clock) {
  world_.patient_barrier();
  watchdog_.enter("aligning clocks");
  const double begin_s = monotonic_s();
  clock.reads = clock_;
  clock.domain = clock_domains_.domain_of_rank.at(static_cast<std::size_t>(world_.rank()));
  const ClockAlignment alignment = align_clocks(world_, clock_domains_, clock_);
  clock.align_s += monotonic_s() - begin_s;
  return alignment;
}

void RankEngine::run(const SweepPoint& point, RankPoint& rank_point) {
  watchdog_.enter("making communicators (" + point_label(point) + ")");
  make_fabric(point, rank_point.group);
  if (!rank_point.work) {
    weights_.reset();
    watchdog_.rest();
    rank_point.clock.before = align_when_all_come(rank_point.clock);
    watchdog_.rest();
    rank_point.clock.after = align_when_all_come(rank_point.clock);
    watchdog_.enter("gathering");
    return;
  }
  measure_ceilings(point, rank_point);
  const RankWork& work = *rank_point.work;
  const std::string label = point_label(work.point);
  watchdog_.enter("preparing weights (" + label + ")");
  const double begin_s = monotonic_s();
  prepare_weights_of(rank_point);
  rank_point.prepare_s += monotonic_s() - begin_s;
  watchdog_.enter("waiting for the other ranks (" + label + ")");
  rank_point.clock.before = align_when_all_come(rank_point.clock);

  const Comm& ranks = working_.at(layout_key(work.point));
  const std::vector<Fault> faults = faults_at(work.point);
  const RunnerHooks hooks = {
      .all_max = [&ranks](int value) { return static_cast<int>(ranks.all_max(value)); },
      .all_max_s = [&ranks](std::span<double> values) { ranks.all_max(values); },
      .align = [&ranks] { ranks.barrier(); },
      .stop_wish = noted_signal,
      .enter_phase = [&](const std::string& phase) { watchdog_.enter(phase + " (" + label + ")"); },
      .before_oracle =
          [&faults] {
            for (const Fault& fault : faults) {
              if (fault.kind == FaultKind::check_error) throw RunError("injected check_error");
            }
          },
      .delay = delay_of(faults),
  };
  const auto transport =
      with_faults(make_transport(work.point, *rank_point.group), faults, *backend_);
  rank_point.outcome = run_point(work, *backend_, *transport, *weights_, hooks);
  transport->close();
  watchdog_.enter("waiting for the other ranks (" + label + ")");
  rank_point.clock.after = align_when_all_come(rank_point.clock);
}

void RankEngine::close() {
  watchdog_.enter("closing");
  for (auto& [key, fabric] : fabrics_) {
    if (fabric != nullptr) fabric->close();
  }
  fabrics_.clear();
  groups_.close();
  for (auto& [key, comm] : working_) comm.close();
  working_.clear();
}

}  // namespace epsweep
