#include "cpu/thread_pool.h"

#include <atomic>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace epsweep {
namespace {

class ThreadPoolTest : public testing::TestWithParam<int> {};

TEST_P(ThreadPoolTest, EveryItemOnceInManyRounds) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.num_threads(), GetParam());
  for (const std::int64_t items : {0, 1, 2, 3, 100, 1000}) {
    for (int round = 0; round < 50; ++round) {
      std::vector<std::atomic<int>> seen(static_cast<std::size_t>(items));
      pool.run(items, [&](std::int64_t item, int worker) {
        EXPECT_GE(worker, 0);
        EXPECT_LT(worker, GetParam());
        ++seen[static_cast<std::size_t>(item)];
      });
      for (const std::atomic<int>& count : seen) ASSERT_EQ(count.load(), 1);
    }
  }
}

TEST_P(ThreadPoolTest, FirstExceptionComesOutAndThePoolStaysUsable) {
  ThreadPool pool(GetParam());
  for (int round = 0; round < 20; ++round) {
    EXPECT_THROW(pool.run(100,
                          [](std::int64_t item, int) {
                            if (item % 10 == 3) throw std::runtime_error("item");
                          }),
                 std::runtime_error);
    std::atomic<int> done = 0;
    pool.run(10, [&](std::int64_t, int) { ++done; });
    EXPECT_EQ(done.load(), 10);
  }
}

TEST_P(ThreadPoolTest, ResultsAreVisibleToTheCaller) {
  ThreadPool pool(GetParam());
  std::vector<std::int64_t> out(5000);
  pool.run(5000, [&](std::int64_t item, int) { out[static_cast<std::size_t>(item)] = item; });
  for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], static_cast<std::int64_t>(i));
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, testing::Values(1, 2, 5));

}  // namespace
}  // namespace epsweep
