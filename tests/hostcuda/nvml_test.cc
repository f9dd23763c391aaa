// Readings of a stand-in for the driver's library, which is built as libnvidia-ml.so.1.
#include "cuda/nvml.h"

#include <gmock/gmock.h>

namespace epsweep::cuda {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Nvml, reads_the_device_with_the_uuid) {
  const DeviceCondition condition = Nvml("GPU-known").condition();
  EXPECT_EQ(condition.clock_mhz, 1980);
  EXPECT_EQ(condition.memory_clock_mhz, 3201);
  EXPECT_EQ(condition.power_w, 345.6);
  ASSERT_TRUE(condition.clock_limits);
  EXPECT_THAT(*condition.clock_limits, ElementsAre("sw_power_cap"));
}

TEST(Nvml, leaves_out_what_the_driver_does_not_offer) {
  EXPECT_FALSE(Nvml("GPU-known").condition().temperature_c);
}

TEST(Nvml, says_nothing_of_unknown_devices) {
  const DeviceCondition condition = Nvml("MIG-unknown").condition();
  EXPECT_FALSE(condition.clock_mhz);
  EXPECT_FALSE(condition.clock_limits);
}

TEST(Nvml, names_the_reasons_for_lower_clocks) {
  EXPECT_THAT(clock_limit_names(0), IsEmpty());
  EXPECT_THAT(clock_limit_names(1), IsEmpty());  // idle
  EXPECT_THAT(clock_limit_names(0x44), ElementsAre("sw_power_cap", "hw_thermal_slowdown"));
  EXPECT_THAT(clock_limit_names(1ULL << 12), ElementsAre("bit 12"));
}

}  // namespace
}  // namespace epsweep::cuda
