// A stream that leaves something out would be called fast.
#include "cpu/cpu_probes.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/host_probe.h"
#include "cpu/cpu_backend.h"

namespace epsweep {
namespace {

TEST(CpuProbes, ReadingReachesEveryWord) {
  for (const int threads : {1, 3}) {
    const auto backend = make_cpu_backend({.num_threads = threads});
    const auto lane = backend->make_lane();
    // Three parts of 2 MiB, the last one short.
    const std::int64_t bytes = (std::int64_t{5} << 20) + 16;
    Buffer buffer = backend->make_buffer(bytes + 32);
    const auto words = buffer.as<std::uint64_t>();
    for (std::uint64_t& word : words) word = 99;  // in front and behind: not to be read
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(bytes) / 8; ++i) {
      words[i + 2] = i * i + 1;
      sum += i * i + 1;
    }
    CpuProbes probes(threads);
    probes.read(*lane, buffer, {16, bytes});
    EXPECT_EQ(probes.checksum(), sum) << threads;
  }
}

TEST(CpuProbes, CopiesTheFirstHalfOntoTheSecondAndNoFurther) {
  const auto backend = make_cpu_backend({.num_threads = 2});
  const auto lane = backend->make_lane();
  const std::int64_t half = (std::int64_t{3} << 20) + 32;
  Buffer buffer = backend->make_buffer(2 * half + 16);
  auto bytes = buffer.as<unsigned char>();
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i % 251);
  const unsigned char behind = bytes[static_cast<std::size_t>(2 * half)];
  CpuProbes probes(2);
  probes.copy(*lane, buffer, {0, half}, half);
  for (std::size_t i = 0; i < static_cast<std::size_t>(half); ++i) {
    ASSERT_EQ(bytes[i], i % 251);
    ASSERT_EQ(bytes[static_cast<std::size_t>(half) + i], i % 251) << i;
  }
  EXPECT_EQ(bytes[static_cast<std::size_t>(2 * half)], behind);
}

TEST(CpuProbes, StreamsMoreThanTheLastCacheHolds) {
  CpuProbes probes(1);
  EXPECT_GE(probes.stream_bytes(), 2 * last_level_cache_bytes());
  EXPECT_GE(probes.stream_bytes(), std::int64_t{128} << 20);
}

TEST(CpuProbes, RefusesRangesThatAreNotThere) {
  const auto backend = make_cpu_backend({.num_threads = 1});
  const auto lane = backend->make_lane();
  Buffer buffer = backend->make_buffer(64);
  CpuProbes probes(1);
  EXPECT_THROW(probes.read(*lane, buffer, {0, 80}), RunError);
  EXPECT_THROW(probes.read(*lane, buffer, {8, 32}), RunError);
  EXPECT_THROW(probes.copy(*lane, buffer, {0, 48}, 32), RunError);
  EXPECT_THROW(probes.copy(*lane, buffer, {-16, 32}, 32), RunError);
}

}  // namespace
}  // namespace epsweep
