// What one rank needs to run points: its device, its groups and its prepared weights.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/point_clock.h"
#include "app/rank_backend.h"
#include "app/run_ceilings.h"
#include "app/watchdog.h"
#include "device/backend.h"
#include "device/transport.h"
#include "faults/faults.h"
#include "mpi/clock_sync.h"
#include "mpi/ep_group.h"
#include "pipeline/expert_weights.h"
#include "pipeline/point_runner.h"
#include "plan/plan.h"
#include "workload/trace_cache.h"

namespace epsweep {

struct RunSettings {
  DeviceSettings devices;
  std::vector<Fault> faults;
  Ceilings ceilings = Ceilings::measure;
  std::vector<std::string> kernels;  // grouped_gemm of the experiment
  double phase_limit_s = 600;        // longest a phase may last; <= 0 for no limit
};

// One point as one rank sees it.
struct RankPoint {
  GroupLayout layout;
  const EpGroup* group = nullptr;      // null on an idle rank
  std::optional<RankWork> work;        // absent on an idle rank
  double prepare_s = 0;                // planning and weights
  std::optional<RankOutcome> outcome;  // absent until measured
  PointClock clock;                    // aligned before and after
};

class RankEngine {
 public:
  RankEngine(const Comm& world, RankBackend backend, const RunSettings& settings);

  // All of these are collective over the world, idle ranks included.
  RankPoint begin(const SweepPoint& point);
  // Why the point cannot run here; the same on all ranks; empty if it can.
  std::string reason_not_to_run(const RankPoint& rank_point) const;
  // What is missing of a rank's memory; the same on all ranks; empty if nothing is.
  std::string memory_shortfall_of(const RankPoint& rank_point) const;
  void run(const SweepPoint& point, RankPoint& rank_point);
  // Measures the rates again that the point's ranks have at best, where some did better.
  void measure_rates_again(const RankPoint& rank_point);
  void close();

  const RunCeilings& ceilings() const { return ceilings_; }
  BackendInfo describe() const { return backend_->describe(); }
  // Of all ranks, on rank 0; see BackendInfo::device_id.
  const std::vector<std::string>& device_ids() const { return device_ids_; }

 private:
  void check_work_agrees(const RankPoint& rank_point);
  void measure_ceilings(const SweepPoint& point, const RankPoint& rank_point);
  RanksTogether together_of(const SweepPoint& point);
  std::unique_ptr<Transport> make_transport(const SweepPoint& point, const EpGroup& group);
  void make_fabric(const SweepPoint& point, const EpGroup* group);
  ClockAlignment align_when_all_come(PointClock& clock);
  void prepare_weights_of(const RankPoint& rank_point);
  std::vector<Fault> faults_at(const SweepPoint& point) const;

  const Comm& world_;
  const RunSettings& settings_;
  std::unique_ptr<Backend> backend_;
  std::vector<std::string> device_ids_;
  EpGroupCache groups_;
  std::map<std::pair<EpGroupCache::Key, std::string>, std::unique_ptr<Fabric>> fabrics_;
  std::map<EpGroupCache::Key, Comm> working_;  // ranks of all groups of a layout
  std::optional<ExpertWeights> weights_;
  RankClock clock_;
  ClockDomains clock_domains_;
  RunCeilings ceilings_;
  TraceCache traces_{0};  // keeps rows per expert of all and one trace: every rank has its own
  Watchdog watchdog_;
};

}  // namespace epsweep
