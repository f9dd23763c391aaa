#include "report/timing_table.h"

#include <array>

#include <fmt/format.h>

#include "base/error.h"
#include "report/npy.h"

namespace epsweep {
namespace {

std::size_t num_values(int num_ranks, int num_iterations, int num_layers) {
  EPS_EXPECT(num_ranks >= 1 && num_iterations >= 1 && num_layers >= 1,
             "timing table without cells");
  return static_cast<std::size_t>(num_ranks) * static_cast<std::size_t>(num_iterations) *
         static_cast<std::size_t>(num_layers) * kNumStages * kNumMeasures;
}

}  // namespace

TimingTable::TimingTable(int num_ranks, int num_iterations, int num_layers)
    : TimingTable(num_ranks, num_iterations, num_layers,
                  std::vector<double>(epsweep::num_values(num_ranks, num_iterations, num_layers))) {
}

TimingTable::TimingTable(int num_ranks, int num_iterations, int num_layers,
                         std::vector<double> values)
    : num_ranks_(num_ranks),
      num_iterations_(num_iterations),
      num_layers_(num_layers),
      values_(std::move(values)) {
  EPS_EXPECT(values_.size() == epsweep::num_values(num_ranks, num_iterations, num_layers),
             "gathered times do not fit the timing table");
}

std::size_t TimingTable::index(int rank, int iteration, int layer, Stage stage,
                               Measure measure) const {
  EPS_EXPECT(rank >= 0 && rank < num_ranks_ && iteration >= 0 && iteration < num_iterations_ &&
                 layer >= 0 && layer < num_layers_,
             "cell outside the timing table");
  const auto row = (static_cast<std::size_t>(rank) * static_cast<std::size_t>(num_iterations_) +
                    static_cast<std::size_t>(iteration)) *
                       static_cast<std::size_t>(num_layers_) +
                   static_cast<std::size_t>(layer);
  return (row * kNumStages + static_cast<std::size_t>(stage)) * kNumMeasures +
         static_cast<std::size_t>(measure);
}

double& TimingTable::at(int rank, int iteration, int layer, Stage stage, Measure measure) {
  return values_[index(rank, iteration, layer, stage, measure)];
}

double TimingTable::at(int rank, int iteration, int layer, Stage stage, Measure measure) const {
  return values_[index(rank, iteration, layer, stage, measure)];
}

double TimingTable::wall_s(int rank, int iteration, int layer, Stage stage) const {
  const std::size_t begin = index(rank, iteration, layer, stage, Measure::begin_s);
  return values_[begin + static_cast<std::size_t>(Measure::end_s)] - values_[begin];
}

void write_npy(const TimingTable& table, const std::string& path) {
  const std::array shape = {table.num_ranks(), table.num_iterations(), table.num_layers(),
                            kNumStages, kNumMeasures};
  write_npy_array(path, shape, table.values());
}

TimingTable read_npy(const std::string& path) {
  NpyArray array = read_npy_array(path, 5, "timing table");
  const std::vector<int>& shape = array.shape;
  if (shape[3] != kNumStages || shape[4] != kNumMeasures) {
    throw RunError(fmt::format("{}: not a timing table: unexpected header, {} stages of {} times",
                               path, shape[3], shape[4]));
  }
  return TimingTable(shape[0], shape[1], shape[2], std::move(array.values));
}

}  // namespace epsweep
