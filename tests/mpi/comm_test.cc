// Comm and the environment on real ranks; any number of them.
#include "mpi/comm.h"

#include <cstdlib>
#include <map>
#include <numeric>
#include <string>

#include <gtest/gtest.h>
#include <time.h>

#include "base/error.h"
#include "base/host_probe.h"
#include "mpi/chunked_gather.h"
#include "mpi/environment.h"
#include "support/mpi_world.h"

namespace epsweep {
namespace {

// rank + 0.5 written `rank` times: rank 0 sends nothing.
template <typename T>
std::vector<T> rank_many_values(int rank) {
  return std::vector<T>(static_cast<std::size_t>(rank), static_cast<T>(rank + 0.5));
}

template <typename T>
std::vector<T> everybodys_values(int size) {
  std::vector<T> all;
  for (int rank = 0; rank < size; ++rank) {
    const auto part = rank_many_values<T>(rank);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

TEST(Comm, ReductionsSeeEveryRank) {
  const Comm& world = mpi_world();
  const std::int64_t size = world.size(), far = std::int64_t{1} << 40;
  EXPECT_EQ(world.all_max(far + world.rank()), far + size - 1);
  EXPECT_EQ(world.all_min(-far - world.rank()), -far - size + 1);
  EXPECT_EQ(world.all_sum(far + world.rank()), size * far + size * (size - 1) / 2);
  EXPECT_DOUBLE_EQ(world.all_sum(0.25), 0.25 * static_cast<double>(size));
}

TEST(Comm, BroadcastFromEveryRoot) {
  const Comm& world = mpi_world();
  for (int root = 0; root < world.size(); ++root) {
    std::vector<std::int64_t> whole(3, world.rank());
    std::vector<double> real(2, world.rank() + 0.5);
    world.broadcast(std::span<std::int64_t>(whole), root);
    world.broadcast(std::span<double>(real), root);
    EXPECT_EQ(whole, std::vector<std::int64_t>(3, root));
    EXPECT_EQ(real, std::vector<double>(2, root + 0.5));
    const std::string text(static_cast<std::size_t>(root) * 10'000, static_cast<char>('a' + root));
    EXPECT_EQ(world.broadcast(world.rank() == root ? text : "not this", root), text);
  }
}

TEST(Comm, AllGatherIsByRank) {
  const auto values = mpi_world().all_gather(100 + mpi_world().rank());
  ASSERT_EQ(values.size(), static_cast<std::size_t>(mpi_world().size()));
  for (std::size_t rank = 0; rank < values.size(); ++rank) {
    EXPECT_EQ(values[rank], 100 + static_cast<std::int64_t>(rank));
  }
}

TEST(Comm, GatherOfTextsKeepsThemApart) {
  const Comm& world = mpi_world();
  const int root = world.size() - 1;
  const auto text = [](int rank) { return std::string(static_cast<std::size_t>(rank) * 700, 'x'); };
  const auto texts = world.gather(text(world.rank()), root);
  ASSERT_EQ(texts.size(), world.rank() == root ? static_cast<std::size_t>(world.size()) : 0U);
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    EXPECT_EQ(texts[rank], text(static_cast<int>(rank)));
  }
}

TEST(Comm, FirstTextIsThatOfTheLowestRankThatHasOne) {
  const Comm& world = mpi_world();
  EXPECT_EQ(world.first_text(""), "");
  const bool late = world.rank() >= world.size() / 2;
  EXPECT_EQ(world.first_text(late ? "rank " + std::to_string(world.rank()) : ""),
            "rank " + std::to_string(world.size() / 2));
}

TEST(Comm, GatherOfDifferentLengths) {
  const Comm& world = mpi_world();
  for (int root = 0; root < world.size(); ++root) {
    const auto reals = world.gather(rank_many_values<double>(world.rank()), root);
    const auto wholes = world.gather(rank_many_values<std::int64_t>(world.rank()), root);
    const int size = world.rank() == root ? world.size() : 0;
    EXPECT_EQ(reals, everybodys_values<double>(size));
    EXPECT_EQ(wholes, everybodys_values<std::int64_t>(size));
  }
}

TEST(Comm, GatherInChunksAgreesWithWhole) {
  const Comm& world = mpi_world();
  std::vector<double> own(static_cast<std::size_t>(1000 + 37 * world.rank()));
  std::iota(own.begin(), own.end(), 1e6 * world.rank());
  const auto whole = world.gather(std::span<const double>(own), 0);
  for (const std::int64_t chunk : {1, 7, 1000, 100'000}) {
    const auto parts = gather_in_chunks(world, std::span<const double>(own), 0, chunk);
    EXPECT_EQ(parts.values, whole) << "chunk " << chunk;
    for (std::size_t rank = 0; rank < parts.counts.size(); ++rank) {
      EXPECT_EQ(parts.counts[rank], 1000 + 37 * static_cast<std::int64_t>(rank));
    }
  }
}

TEST(Comm, SplitOrdersByKeyAndLeavesOthersOut) {
  const Comm& world = mpi_world();
  const bool out = world.rank() == world.size() - 1 && world.size() > 1;
  Comm part = world.split(out ? -1 : world.rank() % 2, -world.rank());
  if (out) {
    EXPECT_EQ(part.size(), 0);
  } else {
    const int members = world.size() > 1 ? world.size() - 1 : 1;
    const int same_color = (members + 1 - world.rank() % 2) / 2;
    EXPECT_EQ(part.size(), same_color);
    EXPECT_EQ(part.rank(), same_color - 1 - world.rank() / 2);
    EXPECT_EQ(part.all_sum(std::int64_t{1}), same_color);
  }
  part.close();
  EXPECT_EQ(part.size(), 0);
  EXPECT_EQ(world.all_sum(std::int64_t{1}), world.size());
}

TEST(Comm, ErrorsCarryWhatAndMpisText) {
  const Comm& world = mpi_world();
  std::int64_t value = 0;
  try {
    world.broadcast(std::span(&value, 1), world.size());
    ADD_FAILURE() << "a root outside the communicator was accepted";
  } catch (const RunError& error) {
    EXPECT_EQ(std::string(error.what()).rfind("broadcast: MPI_ERR_ROOT", 0), 0U) << error.what();
  }
  Comm part = world.split(0, world.rank());  // errors return there as well
  EXPECT_THROW(part.broadcast(std::span(&value, 1), part.size()), RunError);
  part.close();
}

// Stamps of one host's monotonic clock: nobody leaves before the last has come.
template <typename Barrier>
void expect_barrier_holds(const Barrier& barrier) {
  const Comm& world = mpi_world();
  for (int late = 0; late < world.size(); ++late) {
    if (world.rank() == late) {
      const timespec pause{0, 5'000'000};
      nanosleep(&pause, nullptr);
    }
    const auto nanoseconds = [] { return static_cast<std::int64_t>(monotonic_s() * 1e9); };
    const std::int64_t entered = nanoseconds();
    barrier(world);
    const std::int64_t left = nanoseconds();
    EXPECT_GE(left, world.all_max(entered)) << "late rank " << late;
  }
}

TEST(Comm, BarriersHold) {
  expect_barrier_holds([](const Comm& world) { world.barrier(); });
  expect_barrier_holds([](const Comm& world) { world.patient_barrier(); });
}

// Runs with launcher variables replaced, and puts them back.
class Launch : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
      const char* value = std::getenv(name);
      saved_[name] = value == nullptr ? "" : value;
      unsetenv(name);
    }
  }
  void TearDown() override {
    for (const auto& [name, value] : saved_) {
      value.empty() ? unsetenv(name.c_str()) : setenv(name.c_str(), value.c_str(), 1);
    }
  }
  static void set(const char* name, const char* value) { setenv(name, value, 1); }

 private:
  std::map<std::string, std::string> saved_;
};

TEST_F(Launch, OneProcessWhereSlurmMeantMore) {
  EXPECT_EQ(launch_problem(1), "");
  set("SLURM_NTASKS", "8");
  EXPECT_EQ(launch_problem(1),
            "MPI sees 1 process and Slurm 8 (SLURM_NTASKS): start with srun --mpi=pmix, or with "
            "mpirun");
  EXPECT_EQ(launch_problem(8), "");
  EXPECT_EQ(launch_problem(4), "");  // mpirun -np 4 inside the allocation
  set("SLURM_NTASKS", "1");
  EXPECT_EQ(launch_problem(1), "");
}

TEST_F(Launch, OneProcessWhereAnotherLauncherMeantMore) {
  set("PMI_SIZE", "3");
  EXPECT_EQ(launch_problem(1).rfind("MPI sees 1 process and the launcher 3 (PMI_SIZE): ", 0), 0U);
  set("OMPI_COMM_WORLD_SIZE", "2");
  EXPECT_EQ(launch_problem(1).rfind("MPI sees 1 process and mpirun 2 (OMPI_COMM_WORLD_SIZE): ", 0),
            0U);
}

TEST_F(Launch, OneRankOfMpirunInsideAnAllocationIsMeant) {
  set("SLURM_NTASKS", "8");
  set("OMPI_COMM_WORLD_SIZE", "1");
  EXPECT_EQ(launch_problem(1), "");
}

TEST_F(Launch, ValuesThatAreNoCountsAreIgnored) {
  for (const char* value : {"", "8x", "x8", "-8", "0", " 8", "99999999999999999999"}) {
    set("SLURM_NTASKS", value);
    EXPECT_EQ(launch_problem(1), "") << value;
  }
}

TEST(Environment, VersionIsOneLine) {
  const std::string version = mpi_library_version();
  EXPECT_FALSE(version.empty());
  EXPECT_EQ(version.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace epsweep
