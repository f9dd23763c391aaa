#include "pipeline/schedule.h"

#include <gtest/gtest.h>

namespace epsweep {
namespace {

TEST(Schedule, SerialRunsEveryStageOnceInOrder) {
  const std::vector<Step> steps = serial_schedule();
  ASSERT_EQ(steps.size(), static_cast<std::size_t>(kNumStages));
  for (int i = 0; i < kNumStages; ++i) {
    EXPECT_EQ(steps[static_cast<std::size_t>(i)].stage, static_cast<Stage>(i));
    EXPECT_EQ(steps[static_cast<std::size_t>(i)].after, -1);
  }
}

}  // namespace
}  // namespace epsweep
