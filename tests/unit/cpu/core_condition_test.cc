#include "cpu/core_condition.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace epsweep {
namespace {

// Shaped like /sys/devices/system/cpu.
class CoreConditionTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "epsweep_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    dir_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  void put(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(dir_ + "/" + path).parent_path());
    std::ofstream(dir_ + "/" + path) << text << "\n";
  }
  std::string dir_;
};

TEST_F(CoreConditionTest, MeanClockOfTheRanksCoresOnly) {
  put("cpu0/cpufreq/scaling_cur_freq", "9000000");
  put("cpu1/cpufreq/scaling_cur_freq", "2000000");
  put("cpu2/cpufreq/scaling_cur_freq", "3000000");
  CoreCondition condition(dir_, {1, 2});
  EXPECT_EQ(condition.read().clock_mhz, 2500);
  EXPECT_FALSE(condition.read().clock_limits.has_value());
}

TEST_F(CoreConditionTest, ThrottlingSinceTheLastReading) {
  put("cpu3/thermal_throttle/core_throttle_count", "7");
  CoreCondition condition(dir_, {3});
  EXPECT_EQ(condition.read().clock_limits->size(), 0U);
  put("cpu3/thermal_throttle/core_throttle_count", "8");
  EXPECT_EQ(condition.read().clock_limits->size(), 1U);
  EXPECT_EQ(condition.read().clock_limits->size(), 0U);
  EXPECT_FALSE(condition.read().clock_mhz.has_value());
}

TEST_F(CoreConditionTest, IsAbsentWhereTheSystemSaysNothing) {
  CoreCondition condition(dir_, {0, 1});
  EXPECT_FALSE(condition.read().clock_mhz.has_value());
  EXPECT_FALSE(condition.read().clock_limits.has_value());
}

}  // namespace
}  // namespace epsweep
