#include "app/rank_backend.h"

#include <filesystem>

#include <gmock/gmock.h>

#include "support/program.h"

namespace epsweep {
namespace {

using testing::HasSubstr;

// Ranks 0 and 1 on host 0, ranks 2 and 3 on host 1.
HostMap two_hosts() {
  HostMap map;
  map.num_hosts = 2;
  for (int rank = 0; rank < 4; ++rank) {
    RankPlace place;
    place.host = rank / 2;
    map.ranks.push_back(place);
  }
  return map;
}

TEST(SharedDevice, IsTheSameIdOnOneHost) {
  EXPECT_FALSE(first_shared_device(two_hosts(), {"a", "b", "a", "b"}));
  const auto shared = first_shared_device(two_hosts(), {"a", "b", "c", "c"});
  ASSERT_TRUE(shared);
  EXPECT_EQ(shared->first_rank, 2);
  EXPECT_EQ(shared->second_rank, 3);
  EXPECT_EQ(shared->device_id, "c");
}

TEST(SharedDevice, CpusAreNotCounted) {
  EXPECT_FALSE(first_shared_device(two_hosts(), {"", "", "", ""}));
  EXPECT_EQ(ranks_on_busiest_device(two_hosts(), {"", "", "", ""}, {0, 1, 2, 3}), 0);
}

TEST(RanksOnBusiestDevice, CountsWorkingRanksOnly) {
  EXPECT_EQ(ranks_on_busiest_device(two_hosts(), {"a", "b", "c", "c"}, {0, 1, 2, 3}), 2);
  EXPECT_EQ(ranks_on_busiest_device(two_hosts(), {"a", "b", "c", "c"}, {0, 1, 2}), 1);
}

// Where the CUDA engine is linked and the host has no driver: one line, not one per rank.
TEST(CudaBackend, SaysInOneLineThatThereIsNoDriver) {
  const ProgramResult list = run_program("list");
  if (list.out.find("[cuda]") == std::string::npos) GTEST_SKIP() << "no CUDA engine in this build";
  const TempDir dir;
  const std::string experiment = dir.write("x.yaml", toy_experiment());
  const ProgramResult result =
      run_on_ranks(2, "run " + experiment + " --backend cuda --out " + dir.path("out"));
  if (result.exit_code == 0) GTEST_SKIP() << "this host has GPUs";
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("backend cuda: "));
  EXPECT_EQ(result.err.find("error:"), result.err.rfind("error:")) << result.err;
  EXPECT_FALSE(std::filesystem::exists(dir.path("out")));
}

TEST(Backend, UnknownNameIsRefusedWithTheList) {
  const TempDir dir;
  const std::string experiment = dir.write("x.yaml", toy_experiment());
  const ProgramResult result = run_program("plan " + experiment + " --backend gpu");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("there is no backend 'gpu'; linked in: cpu"));
}

}  // namespace
}  // namespace epsweep
