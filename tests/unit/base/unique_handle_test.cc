#include "base/unique_handle.h"

#include <gtest/gtest.h>

namespace epsweep {
namespace {

int destroyed = 0;

struct Traits {
  using value_type = int;
  static value_type null() { return -1; }
  static void destroy(value_type) noexcept { ++destroyed; }
};
using Handle = UniqueHandle<Traits>;

TEST(UniqueHandle, DestroysOnceHoweverOftenItMoves) {
  destroyed = 0;
  {
    Handle first(3);
    Handle second(std::move(first));
    Handle third;
    third = std::move(second);
    EXPECT_EQ(third.get(), 3);
    EXPECT_TRUE(third);
    EXPECT_EQ(destroyed, 0);
  }
  EXPECT_EQ(destroyed, 1);
}

TEST(UniqueHandle, AssignmentDestroysWhatWasThereAndReleaseDoesNot) {
  destroyed = 0;
  Handle handle(1);
  handle = Handle(2);
  EXPECT_EQ(destroyed, 1);
  EXPECT_EQ(handle.release(), 2);
  EXPECT_FALSE(handle);
  handle.reset();
  EXPECT_EQ(destroyed, 1);
}

}  // namespace
}  // namespace epsweep
