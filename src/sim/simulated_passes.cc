#include "sim/simulated_passes.h"

#include <algorithm>

#include "base/chain_shape.h"
#include "base/error.h"
#include "report/arrival.h"

namespace epsweep {
namespace {

// Where ranks are in the pass, and what the next stage costs each of them.
class Ranks {
 public:
  Ranks(const DeclaredTimes& times, const SimConditions& conditions, SimPass pass)
      : times_(times), conditions_(conditions) {
    const auto num_rows = static_cast<std::size_t>(times.num_rows());
    EPS_EXPECT(conditions.faults_of_row.empty() || conditions.faults_of_row.size() == num_rows,
               "faults of other ranks than those that work");
    EPS_EXPECT(conditions.clock_of_row.empty() || conditions.clock_of_row.size() == num_rows,
               "clocks of other ranks than those that work");
    for (const int rank : times.world_rank_of_row) {
      noise_.emplace_back(conditions.noise, conditions.point_key, rank, pass);
    }
    now_.resize(num_rows);
    entered_.resize(num_rows);
    last_in_.resize(static_cast<std::size_t>(std::ranges::max(times.group_of_row)) + 1);
  }

  std::size_t size() const { return now_.size(); }
  Ticks now(std::size_t row) const { return now_[row]; }
  // When it came to the stage's begin mark.
  Ticks entered(std::size_t row) const { return entered_[row]; }
  double clock_s(std::size_t row, Ticks t) const {
    return conditions_.clock_of_row.empty() ? seconds_of(t)
                                            : conditions_.clock_of_row[row].at(seconds_of(t));
  }

  void meet() { std::ranges::fill(now_, std::ranges::max(now_)); }

  // `index`: of the layer among all of the pass.
  void run_stage(int iteration, int routing, Stage stage, std::uint64_t index) {
    std::ranges::fill(last_in_, Ticks{0});
    for (std::size_t row = 0; row < size(); ++row) {
      entered_[row] = now_[row] + delay(row, iteration, stage, DelayPlace::before);
      now_[row] = entered_[row] + delay(row, iteration, stage, DelayPlace::inside);
      Ticks& last_in = last_in_[group_of(row)];
      last_in = std::max(last_in, now_[row]);
    }
    const bool meets = is_exchange(stage) && times_.exchanges == Exchanges::between_ranks;
    const std::uint64_t draw = index * kNumStages + static_cast<std::uint64_t>(stage);
    for (std::size_t row = 0; row < size(); ++row) {
      const double own_s = times_.at(routing, static_cast<int>(row), stage);
      const Ticks starts = meets ? last_in_[group_of(row)] : now_[row];
      now_[row] = starts + ticks_of(own_s * noise_[row].factor(draw));
    }
  }

 private:
  std::size_t group_of(std::size_t row) const {
    return static_cast<std::size_t>(times_.group_of_row[row]);
  }
  Ticks delay(std::size_t row, int iteration, Stage stage, DelayPlace place) const {
    if (conditions_.faults_of_row.empty() || conditions_.faults_of_row[row].empty()) return 0;
    const std::int64_t us = delay_us(conditions_.faults_of_row[row], iteration, stage, place);
    return ticks_of(static_cast<double>(us) * 1e-6);
  }

  const DeclaredTimes& times_;
  const SimConditions& conditions_;
  std::vector<RankNoise> noise_;      // [rows]
  std::vector<Ticks> now_, entered_;  // [rows]
  std::vector<Ticks> last_in_;        // [groups]
};

}  // namespace

TimingTable simulate_aligned(const DeclaredTimes& times, const SimConditions& conditions,
                             int num_iterations) {
  TimingTable table(times.num_rows(), num_iterations, times.num_layers);
  Ranks ranks(times, conditions, SimPass::aligned);
  std::uint64_t index = 0;
  for (int i = 0; i < num_iterations; ++i) {
    for (int l = 0; l < times.num_layers; ++l, ++index) {
      for (int s = 0; s < kNumStages; ++s) {
        const auto stage = static_cast<Stage>(s);
        ranks.meet();
        ranks.run_stage(i, routing_at(times.num_layers, times.num_routings, i, l), stage, index);
        for (std::size_t row = 0; row < ranks.size(); ++row) {
          const auto r = static_cast<int>(row);
          table.at(r, i, l, stage, Measure::begin_s) = ranks.clock_s(row, ranks.entered(row));
          table.at(r, i, l, stage, Measure::end_s) = ranks.clock_s(row, ranks.now(row));
        }
      }
    }
  }
  return table;
}

ChainTable simulate_chained(const DeclaredTimes& times, const SimConditions& conditions,
                            int num_chains) {
  const int chain_layers = chain_layers_for(times.num_layers);
  ChainTable table(times.num_rows(), num_chains, chain_layers);
  Ranks ranks(times, conditions, SimPass::chained);
  std::uint64_t index = 0;
  for (int chain = 0; chain < num_chains; ++chain) {
    ranks.meet();
    for (int position = 0; position < chain_layers; ++position, ++index) {
      for (std::size_t row = 0; row < ranks.size(); ++row) {
        table.begin_s(static_cast<int>(row), chain, position) = ranks.clock_s(row, ranks.now(row));
      }
      const int routing = routing_at(times.num_layers, times.num_routings, chain, position);
      for (int s = 0; s < kNumStages; ++s) {
        ranks.run_stage(chain, routing, static_cast<Stage>(s), index);
      }
      for (std::size_t row = 0; row < ranks.size(); ++row) {
        table.end_s(static_cast<int>(row), chain, position) = ranks.clock_s(row, ranks.now(row));
      }
    }
  }
  return table;
}

}  // namespace epsweep
