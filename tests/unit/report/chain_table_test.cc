#include "report/chain_table.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "report/timing_table.h"
#include "sample_point.h"

namespace epsweep {
namespace {

TEST(ChainTable, SurvivesItsFile) {
  ChainTable table(2, 3, 4);
  table.end_s(1, 2, 3) = 7.25;
  table.begin_s(1, 2, 3) = 0.5;
  const testing::ScratchDir dir;
  write_npy(table, dir / "chains.npy");
  const ChainTable read = read_chain_npy(dir / "chains.npy");
  EXPECT_EQ(read.num_chains(), 3);
  EXPECT_EQ(read.chain_layers(), 4);
  EXPECT_DOUBLE_EQ(read.end_s(1, 2, 3), 7.25);
  EXPECT_DOUBLE_EQ(read.begin_s(1, 2, 3), 0.5);
  EXPECT_DOUBLE_EQ(read.end_s(1, 2, 2), 0);
}

TEST(ChainTable, RefusesWhatIsNone) {
  EXPECT_THROW(ChainTable(2, 3, 4, std::vector<double>(5)), RunError);
  EXPECT_THROW(ChainTable(0, 3, 4), RunError);
  const ChainTable table(1, 1, 4);
  EXPECT_THROW(static_cast<void>(table.end_s(0, 1, 0)), RunError);
  const testing::ScratchDir dir;
  write_npy(TimingTable(1, 1, 1), dir / "stages.npy");
  EXPECT_THROW(read_chain_npy(dir / "stages.npy"), RunError);
  write_npy(table, dir / "chains.npy");
  EXPECT_THROW(read_npy(dir / "chains.npy"), RunError);
}

}  // namespace
}  // namespace epsweep
