#include "cpu/perf_counters.h"

#include <thread>

#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/mman.h>

namespace epsweep {
namespace {

constexpr std::size_t kPages = 500, kPageBytes = 4096;

void touch_pages() {
  void* const memory = mmap(nullptr, kPages * kPageBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  madvise(memory, kPages * kPageBytes, MADV_NOHUGEPAGE);
  for (std::size_t page = 0; page < kPages; ++page) {
    static_cast<volatile char*>(memory)[page * kPageBytes] = 1;
  }
  munmap(memory, kPages * kPageBytes);
}

// Page faults are counted by software, so any machine that allows counters has them.
TEST(PerfCounters, CountThisThreadAndThoseItStarts) {
  const PerfCounters counters({{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS}});
  const auto before = counters.read().at(0);
  if (!before) GTEST_SKIP() << counters.why_not();
  touch_pages();
  const auto own = counters.read().at(0);
  EXPECT_GE(*own - *before, static_cast<std::int64_t>(kPages));
  std::thread(touch_pages).join();
  EXPECT_GE(*counters.read().at(0) - *own, static_cast<std::int64_t>(kPages));
}

TEST(PerfCounters, WhatTheKernelDoesNotHaveIsAbsentAndSaid) {
  const PerfCounters counters({{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS}, {99, 12345}});
  const auto counts = counters.read();
  ASSERT_EQ(counts.size(), 2U);
  EXPECT_FALSE(counts[1].has_value());
  EXPECT_NE(counters.why_not().find("perf_event_open: "), std::string::npos);
  EXPECT_NE(counters.why_not().find("perf_event_paranoid"), std::string::npos);
}

TEST(HardwareCounters, AreReadOnlyWhenAskedFor) {
  const WorkCounters off = HardwareCounters(WorkCounting::off).read();
  EXPECT_FALSE(off.cycles.has_value());
  EXPECT_TRUE(off.why_not.empty());
  const WorkCounters on = HardwareCounters(WorkCounting::hardware).read();
  EXPECT_TRUE((on.cycles && on.instructions && on.cache_misses) || !on.why_not.empty());
}

}  // namespace
}  // namespace epsweep
