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
#include "costs/placement_score.h"
#include "costs/traffic.h"
#include "plan/plan.h"
#include "plan/sweep_point.h"
#include "workload/placement.h"
#include "workload/trace.h"
#include "workload/trace_cache.h"

namespace epsweep {

// How it is known where the ranks of a group live.
enum class PlacesFrom { declared, measured_hosts };
inline const std::vector<std::string> kPlacesFromNames = {"declared", "measured hosts"};
inline const std::string& to_string(PlacesFrom from) {
  return kPlacesFromNames[static_cast<std::size_t>(from)];
}
struct KnownPlaces {
  GroupPlaces group;
  PlacesFrom from = PlacesFrom::declared;
};
// Of the first group; absent where no topology is declared.
std::optional<KnownPlaces> places_from_topology(const SweepPoint& point);

// What a routing that asks for max_over_mean got, in each layer.
struct RealisedSkew {
  double asked = 0;                   // max_over_mean of rows per expert
  std::string param;                  // the skew parameter that was searched
  std::vector<double> values;         // found, [layers]
  std::vector<double> max_over_mean;  // with it, [layers]
};

// Of one EP group; the same on every rank.
struct PointWorkload {
  std::vector<std::vector<std::int64_t>> rows_per_expert;  // [routings][num_experts]
  std::vector<std::vector<std::int64_t>> rows_per_rank;    // [routings][ep_size], received rows
  std::vector<std::int64_t> send_matrix;  // as LayerCounts has it, summed over routings
  Traffic traffic;                        // copies summed over routings; max_* of the worst
  std::optional<KnownPlaces> places;      // absent: traffic says nothing about domains
  FfnWork ffn;                            // all ranks, summed over routings
  std::vector<FfnWork> ffn_of_rank;       // [ep_size], summed over routings
  // The same by routing: the slowest rank of one need not be that of the next.
  std::vector<std::vector<FfnWork>> ffn_of_routing;  // [routings][ep_size]
  // Remote copies that the rank which sends or receives most moves, by routing: letters A and D.
  std::vector<std::int64_t> busiest_a_rows, busiest_d_copies;  // [routings]
  std::vector<std::int64_t> slots_per_rank;                    // [ep_size], the same in all layers
  std::vector<std::int64_t> weight_bytes_per_rank;             // [ep_size], one layer
  std::int64_t metadata_bytes = 0;  // beside the rows of dispatch, all ranks, summed over routings
  std::int64_t capacity_rows = 0;   // of every pair of ranks in every routing; 0: what they need
  MemoryNeed memory;
  std::uint64_t routing_checksum = 0;
  std::optional<std::string> placement_fitted_on;  // absent if it does not look at rows
  std::optional<PlacementScore> placement_score;   // absent where layers were not scored
  std::optional<RealisedSkew> realised_skew;       // absent if the routing states its parameters
};

// Takes the routings (SweepPoint::num_routings) one after the other, so that no more than one trace
// need be kept.
class PointWorkloadSum {
 public:
  explicit PointWorkloadSum(const SweepPoint& point,
                            std::optional<KnownPlaces> places = std::nullopt);
  void add_layer(const Trace& trace, const Placement& placement);
  // After add_layer() of the same layer, of the point's first step only: where placements are
  // judged and fitted. `traces` has what the placement is fitted to and judged on, where those are
  // not the point's own trace.
  void score_layer(const Placement& placement, TraceCache& traces);
  // Of the routings so far: what a capacity of pairs of ranks has to hold.
  std::int64_t most_pair_rows() const { return most_pair_rows_; }
  // After all routings. capacity_rows: what a transport of fixed capacity gives every pair of
  // ranks.
  PointWorkload finish(std::int64_t capacity_rows = 0);

 private:
  const SweepPoint& point_;
  std::vector<TokenRange> tokens_of_rank_;
  PointWorkload sum_;
  Fingerprint routing_;
  PlacementScoreSum score_;
  // Whose traces the placement is fitted to and judged on; absent for the own one.
  std::optional<SweepPoint> fitted_twin_, judged_twin_;
  std::vector<std::int32_t> own_first_experts_;  // of the routing added last
  SeenBefore seen_before_ = SeenBefore::yes;     // in all layers scored so far
  std::int64_t max_recv_rows_ = 0, most_pair_rows_ = 0;
  MaxCopies max_copies_;  // of exchange unit rank
};

}  // namespace epsweep
