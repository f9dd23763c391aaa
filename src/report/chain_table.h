// Times of layers that ran back to back, with nothing but two marks around each.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace epsweep {

// Dense doubles [rank][chain][position][begin_s, end_s], on the common axis (timing_table.h). A
// chain runs the point's layers one after the other, from the first again if it is longer than they
// are.
class ChainTable {
 public:
  // values.size() must fit.
  ChainTable(int num_ranks, int num_chains, int chain_layers, std::vector<double> values);
  ChainTable(int num_ranks, int num_chains, int chain_layers);

  int num_ranks() const { return num_ranks_; }
  int num_chains() const { return num_chains_; }
  int chain_layers() const { return chain_layers_; }
  std::span<const double> values() const { return values_; }

  double& begin_s(int rank, int chain, int position) {
    return values_[index(rank, chain, position)];
  }
  double& end_s(int rank, int chain, int position) {
    return values_[index(rank, chain, position) + 1];
  }
  double begin_s(int rank, int chain, int position) const {
    return values_[index(rank, chain, position)];
  }
  double end_s(int rank, int chain, int position) const {
    return values_[index(rank, chain, position) + 1];
  }

 private:
  std::size_t index(int rank, int chain, int position) const;

  int num_ranks_, num_chains_, chain_layers_;
  std::vector<double> values_;
};

// .npy files, the four axes above. Throw RunError.
void write_npy(const ChainTable& table, const std::string& path);
ChainTable read_chain_npy(const std::string& path);

}  // namespace epsweep
