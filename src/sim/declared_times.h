// What every rank's stages take by themselves, as declared: no waiting, noise or fault in it.
#pragma once

#include <vector>

#include "base/stage.h"
#include "costs/stage_costs.h"
#include "costs/virtual_shards.h"
#include "plan/plan.h"
#include "sim/exchange_volume.h"
#include "workload/placement.h"
#include "workload/trace.h"

namespace epsweep {

// Seconds [routing][row][stage]; of an exchange the rank's own transfer. Rows are the ranks in
// groups, in world order, as in timing tables.
// An exchange begins when the last rank of the group has come; a copy when the rank itself has.
enum class Exchanges { between_ranks, local_copies };

struct DeclaredTimes {
  Exchanges exchanges = Exchanges::between_ranks;
  int num_layers = 0, num_routings = 0;
  std::vector<int> world_rank_of_row, group_of_row;
  std::vector<double> own_s;

  int num_rows() const { return static_cast<int>(group_of_row.size()); }
  double at(int routing, int row, Stage stage) const {
    return own_s[(static_cast<std::size_t>(routing) * group_of_row.size() +
                  static_cast<std::size_t>(row)) *
                     kNumStages +
                 static_cast<std::size_t>(stage)];
  }
};

// Takes the routings one after the other, so that no more than one trace need be kept. All from
// point.sim, or the defaults where that is null. An exchange takes a rank
//   max over kinds of link that it has peers on (alpha + max(bytes sent, bytes received) / rate)
// since they move side by side; peers of other groups do not count. The domains of ranks are those
// of the point's topology; everybody is in one where it declares none. With transport local_copy
// all that a rank receives costs what bytes to itself do, and neither slow links nor what `sim`
// says of exchange stages (`stages_us`) count, as those are of the exchange that it replaces.
//
// With calibrated costs (`predicted`) all of it comes from those instead: expert_ffn from the table
// with the rows of the rank's own slots, dispatch and combine from the model of its bytes by kind
// of link, the others from lines over the rank's tokens or peers.
//
// With measured shards their own stages are those, whatever the costs are.
struct PredictedCosts {
  const StageCosts* costs = nullptr;
  Bound bound = Bound::central;
  const VirtualShards* shards = nullptr;  // of all routings of the point
};
class DeclaredTimesSum {
 public:
  DeclaredTimesSum(const SweepPoint& point, const GroupLayout& layout,
                   const PredictedCosts& predicted = {});
  void add_layer(const Trace& trace, const Placement& placement);
  DeclaredTimes finish() { return std::move(times_); }
  // Of predicted times, the layers so far.
  const Distance& distance() const { return distance_; }

 private:
  void put_row(std::size_t row, const LayerVolume& volume, double ffn_s, double* own_s) const;
  void add_slow_links(double* own_s) const;
  std::vector<double> ffn_of_ranks(const Placement& placement,
                                   const std::vector<std::int64_t>& rows_per_slot);
  void put_measured(std::size_t row, double* own_s) const;
  void predict_row(std::size_t row, const LayerVolume& volume, double ffn_s, double* own_s);

  const SweepPoint& point_;
  const SimCosts costs_;
  const PredictedCosts predicted_;
  const std::vector<TokenRange> tokens_of_rank_;
  Distance distance_;
  std::vector<int> ep_rank_of_row_;
  std::vector<std::vector<int>> domains_;    // that groups have, each once: [ep_size]
  std::vector<std::size_t> domains_of_row_;  // its group's
  DeclaredTimes times_;
};

// Operations and weight bytes by second that the point's expert FFN reaches at best.
struct FfnRates {
  double flop_per_s = 0, weight_bytes_per_s = 0;
};
FfnRates ffn_rates(const SweepPoint& point, const SimCosts& costs);

}  // namespace epsweep
