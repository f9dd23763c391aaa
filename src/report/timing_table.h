// All times of one point: the only carrier of time between ranks and the report.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/stage.h"

namespace epsweep {

enum class Measure : int {
  begin_s,  // entry into the stage, on rank 0's clock, from its first begin of the point
  end_s,    // exit
  cpu_s,    // CPU seconds of the rank's process in the stage
};
inline constexpr int kNumMeasures = 3;

// Dense doubles [rank][iteration][layer][stage][measure], so that ranks gather by concatenation.
class TimingTable {
 public:
  TimingTable(int num_ranks, int num_iterations, int num_layers);
  // From gathered ranks; values.size() must fit.
  TimingTable(int num_ranks, int num_iterations, int num_layers, std::vector<double> values);

  int num_ranks() const { return num_ranks_; }
  int num_iterations() const { return num_iterations_; }
  int num_layers() const { return num_layers_; }
  std::span<const double> values() const { return values_; }

  double& at(int rank, int iteration, int layer, Stage stage, Measure measure);
  double at(int rank, int iteration, int layer, Stage stage, Measure measure) const;
  // end - begin
  double wall_s(int rank, int iteration, int layer, Stage stage) const;

 private:
  std::size_t index(int rank, int iteration, int layer, Stage stage, Measure measure) const;
  int num_ranks_, num_iterations_, num_layers_;
  std::vector<double> values_;
};

// NumPy's .npy format 1.0, little-endian float64, C order, the five axes above. Throws RunError.
void write_npy(const TimingTable& table, const std::string& path);
TimingTable read_npy(const std::string& path);

}  // namespace epsweep
