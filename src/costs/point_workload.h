// What routing and placement of a point mean in rows, operations and bytes, before anything runs.
// Plans show it, and results record it beside the times.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "costs/ffn_work.h"
#include "costs/memory.h"
#include "costs/traffic.h"
#include "plan/sweep_point.h"
#include "workload/placement.h"
#include "workload/trace.h"

namespace epsweep {

// What a routing that asks for max_over_mean got, in each layer.
struct RealisedSkew {
  double asked = 0;                   // max_over_mean of rows per expert
  std::string param;                  // the skew parameter that was searched
  std::vector<double> values;         // found, [layers]
  std::vector<double> max_over_mean;  // with it, [layers]
};

// Of one EP group; the same on every rank.
struct PointWorkload {
  std::vector<std::vector<std::int64_t>> rows_per_expert;  // [layers][num_experts]
  std::vector<std::vector<std::int64_t>> rows_per_rank;    // [layers][ep_size], received rows
  Traffic traffic;                           // copies summed over layers; max_* of the worst layer
  FfnWork ffn;                               // all ranks, summed over layers
  std::vector<FfnWork> ffn_of_rank;          // [ep_size], summed over layers
  std::vector<std::int64_t> slots_per_rank;  // [ep_size], the same in all layers
  std::vector<std::int64_t> weight_bytes_per_rank;  // [ep_size], one layer
  MemoryNeed memory;
  std::uint64_t routing_checksum = 0;
  std::optional<std::string> placement_fitted_on;  // absent if it does not look at rows
  std::optional<RealisedSkew> realised_skew;       // absent if the routing states its parameters
};

// Takes the layers one after the other, so that no more than one trace need be kept.
class PointWorkloadSum {
 public:
  explicit PointWorkloadSum(const SweepPoint& point);
  void add_layer(const Trace& trace, const Placement& placement);
  // After all layers.
  PointWorkload finish();

 private:
  const SweepPoint& point_;
  std::vector<TokenRange> tokens_of_rank_;
  PointWorkload sum_;
  Fingerprint routing_;
  std::int64_t max_recv_rows_ = 0;
};

}  // namespace epsweep
