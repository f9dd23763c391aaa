#include "app/watchdog.h"

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include <gtest/gtest.h>

namespace epsweep {
namespace {

using namespace std::chrono_literals;

TEST(Watchdog, NamesThePhaseThatLastsTooLong) {
  std::promise<std::string> expired;
  Watchdog watchdog(0.05, [&](const std::string& where) { expired.set_value(where); });
  watchdog.enter("warm-up (EP8)");
  auto where = expired.get_future();
  ASSERT_EQ(where.wait_for(10s), std::future_status::ready);
  EXPECT_EQ(where.get(), "warm-up (EP8)");
}

TEST(Watchdog, IsQuietWhilePhasesFollowEachOther) {
  std::atomic<bool> expired = false;
  {
    Watchdog watchdog(5, [&](const std::string&) { expired = true; });
    for (int i = 0; i < 1000; ++i) watchdog.enter("phase");
  }
  EXPECT_FALSE(expired);
}

TEST(Watchdog, RestsUntilTheNextPhase) {
  std::atomic<int> expired = 0;
  Watchdog watchdog(0.05, [&](const std::string&) { ++expired; });
  watchdog.rest();
  std::this_thread::sleep_for(200ms);
  EXPECT_EQ(expired, 0);
  watchdog.enter("phase");
  std::this_thread::sleep_for(500ms);
  EXPECT_EQ(expired, 1);
}

TEST(Watchdog, WithoutALimitNeverExpires) {
  Watchdog watchdog(0, [](const std::string&) { FAIL(); });
  watchdog.enter("phase");
}

}  // namespace
}  // namespace epsweep
