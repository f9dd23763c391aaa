#include "report/chain_table.h"

#include <array>

#include <fmt/format.h>

#include "base/error.h"
#include "report/npy.h"

namespace epsweep {
namespace {

constexpr int kMarks = 2;

std::size_t num_values(int num_ranks, int num_chains, int chain_layers) {
  EPS_EXPECT(num_ranks >= 1 && num_chains >= 1 && chain_layers >= 1, "chain table without cells");
  return static_cast<std::size_t>(num_ranks) * static_cast<std::size_t>(num_chains) *
         static_cast<std::size_t>(chain_layers) * kMarks;
}

}  // namespace

ChainTable::ChainTable(int num_ranks, int num_chains, int chain_layers, std::vector<double> values)
    : num_ranks_(num_ranks),
      num_chains_(num_chains),
      chain_layers_(chain_layers),
      values_(std::move(values)) {
  EPS_EXPECT(values_.size() == num_values(num_ranks, num_chains, chain_layers),
             "gathered times do not fit the chain table");
}

ChainTable::ChainTable(int num_ranks, int num_chains, int chain_layers)
    : ChainTable(num_ranks, num_chains, chain_layers,
                 std::vector<double>(num_values(num_ranks, num_chains, chain_layers))) {}

std::size_t ChainTable::index(int rank, int chain, int position) const {
  EPS_EXPECT(rank >= 0 && rank < num_ranks_ && chain >= 0 && chain < num_chains_ && position >= 0 &&
                 position < chain_layers_,
             "cell outside the chain table");
  const auto row = static_cast<std::size_t>(rank) * static_cast<std::size_t>(num_chains_) +
                   static_cast<std::size_t>(chain);
  return (row * static_cast<std::size_t>(chain_layers_) + static_cast<std::size_t>(position)) *
         kMarks;
}

void write_npy(const ChainTable& table, const std::string& path) {
  const std::array shape = {table.num_ranks(), table.num_chains(), table.chain_layers(), kMarks};
  write_npy_array(path, shape, table.values());
}

ChainTable read_chain_npy(const std::string& path) {
  NpyArray array = read_npy_array(path, 4, "table of chains");
  const std::vector<int>& shape = array.shape;
  if (shape[3] != kMarks) {
    throw RunError(fmt::format("{}: not a table of chains: {} marks by layer", path, shape[3]));
  }
  return ChainTable(shape[0], shape[1], shape[2], std::move(array.values));
}

}  // namespace epsweep
