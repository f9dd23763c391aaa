#include "cpu/cpu_backend.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "base/bfloat16.h"
#include "base/error.h"
#include "base/host_probe.h"
#include "cpu/cache_flush.h"

namespace epsweep {
namespace {

TEST(CpuBackend, RegistersItself) {
  const auto backend = BackendCatalog::instance().at("cpu").make({.num_threads = 2});
  const BackendInfo info = backend->describe();
  EXPECT_EQ(info.name, "cpu");
  EXPECT_EQ(info.num_threads, 2);
  EXPECT_GT(info.memory_bytes, 0);
  EXPECT_EQ(make_cpu_backend({.memory_bytes = 12345})->describe().memory_bytes, 12345);
}

TEST(CpuBackend, BuffersAreAligned) {
  for (const std::int64_t bytes : {1, 63, 64, 100000}) {
    const Buffer buffer = make_cpu_buffer(bytes);
    EXPECT_EQ(buffer.bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0U);
  }
  const Buffer large = make_cpu_buffer((8 << 20) + 1);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(large.data()) % (2 << 20), 0U);
  EXPECT_EQ(make_cpu_buffer(0).bytes(), 0);
}

// Half, because a sanitizer's own records of an allocation may take an eighth of it.
TEST(CpuBackend, TouchesNoPageAtAllocation) {
  const std::int64_t before = peak_resident_bytes(), bytes = std::int64_t{2} << 30;
  const Buffer buffer = make_cpu_buffer(bytes);
  EXPECT_LT(peak_resident_bytes() - before, bytes / 2);
}

TEST(CpuBackend, NamesTheBytesItCannotGet) {
  for (const std::int64_t bytes :
       {std::int64_t{1} << 60, std::numeric_limits<std::int64_t>::max()}) {
    try {
      make_cpu_buffer(bytes);
      FAIL() << "got " << bytes << " bytes";
    } catch (const RunError& error) {
      EXPECT_NE(std::string(error.what()).find(std::to_string(bytes)), std::string::npos);
    }
  }
}

TEST(CpuBackend, PoisonIsNaNInBothTypesAndCopiesRoundTrip) {
  const auto backend = make_cpu_backend({});
  Buffer buffer = backend->make_buffer(64);
  backend->poison(buffer);
  for (const float value : buffer.as<float>()) EXPECT_TRUE(std::isnan(value));
  for (const std::uint16_t bits : buffer.as<std::uint16_t>()) {
    EXPECT_TRUE(std::isnan(float_of_bf16(bits)));
  }
  const std::vector<float> sent = {1, 2, 3};
  std::vector<float> got(3);
  backend->copy_from_host(sent.data(), buffer, 12);
  backend->copy_to_host(buffer, got.data(), 12);
  EXPECT_EQ(got, sent);
  EXPECT_TRUE(std::isnan(buffer.as<float>()[3]));
  EXPECT_THROW(backend->copy_from_host(sent.data(), buffer, 65), RunError);
}

TEST(CpuTimeline, MarksAreOrderedAndCpuTimeCounts) {
  const auto backend = make_cpu_backend({});
  const auto lane = backend->make_lane();
  const auto timeline = backend->make_timeline(3);
  const double before = monotonic_s();
  timeline->mark(*lane, 0);
  timeline->wait(*lane, 0);
  volatile double sink = 0;
  while (monotonic_s() < before + 0.002) sink = sink + 1;
  timeline->mark(*lane, 1);
  timeline->mark(*lane, 2);
  lane->synchronize();
  EXPECT_LE(before, timeline->at(0));
  EXPECT_GE(timeline->at(1) - timeline->at(0), 0.0);
  EXPECT_LE(timeline->at(1), timeline->at(2));
  EXPECT_LE(timeline->at(2), monotonic_s());
  EXPECT_GT(timeline->cpu_at(1), timeline->cpu_at(0));
}

TEST(CacheFlush, KeepsTheContents) {
  std::vector<int> values(100001);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i);
  flush_from_caches(values.data(), static_cast<std::int64_t>(values.size() * sizeof(int)));
  flush_from_caches(values.data() + 1, 3);
  flush_from_caches(values.data(), 0);
  flush_from_caches(nullptr, 0);
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], static_cast<int>(i));
}

}  // namespace
}  // namespace epsweep
