#include "ceilings/stream_probe.h"

#include <gtest/gtest.h>

#include "scripted_device.h"

namespace epsweep {
namespace {

TEST(StreamProbe, RatesAreBytesOverTime) {
  ScriptedDevice device;
  ScriptedRanks ranks;
  const StreamRates rates = probe_streams(device, ranks.together());
  EXPECT_EQ(rates.streamed_bytes, std::int64_t{64} << 20);
  EXPECT_NEAR(*rates.read_bytes_per_s, 10e9, 1);
  EXPECT_NEAR(*rates.copy_bytes_per_s, 8e9, 1);
  EXPECT_GE(*rates.launch_latency_s, 0);
  EXPECT_FALSE(rates.cached());
  // One pass that does not count and two that do.
  EXPECT_EQ(device.stream_probes.read_bytes, 3 * rates.streamed_bytes);
}

// The first pass takes 67 ms: 16 parts of more than 4 ms.
TEST(StreamProbe, LongPassesAreTimedInParts) {
  ScriptedDevice device;
  ScriptedRanks ranks;
  probe_streams(device, ranks.together());
  EXPECT_EQ(device.stream_probes.longest_part_bytes, std::int64_t{4} << 20);
}

TEST(StreamProbe, TakesAnEighthOfTheMemoryAndSaysWhatThatLeavesOfTheCache) {
  ScriptedDevice device;
  device.memory_bytes = std::int64_t{256} << 20;
  ScriptedRanks ranks;
  const StreamRates rates = probe_streams(device, ranks.together());
  EXPECT_EQ(rates.streamed_bytes, std::int64_t{32} << 20);  // less than twice 32 MiB of cache
  EXPECT_TRUE(rates.cached());
  EXPECT_TRUE(rates.read_bytes_per_s);
}

// The others wait for every measurement, whatever a rank cannot do.
TEST(StreamProbe, WithoutMemoryOrProbesARankTakesPartAllTheSame) {
  ScriptedRanks able, poor, blind;
  ScriptedDevice device, no_memory, no_probes;
  no_memory.largest_buffer = 0;
  no_probes.has_probes = false;
  probe_streams(device, able.together());
  const StreamRates without_memory = probe_streams(no_memory, poor.together());
  const StreamRates without_probes = probe_streams(no_probes, blind.together());
  EXPECT_FALSE(without_memory.read_bytes_per_s);
  EXPECT_FALSE(without_memory.copy_bytes_per_s);
  EXPECT_FALSE(without_probes.read_bytes_per_s);
  EXPECT_FALSE(without_probes.launch_latency_s);
  EXPECT_EQ(poor.num_calls, able.num_calls);
  EXPECT_EQ(blind.num_calls, able.num_calls);
}

TEST(StreamProbe, TheRealCpuHasRates) {
  class SmallCpu final : public ForwardingBackend {
   public:
    BackendInfo describe() const override {
      BackendInfo info = ForwardingBackend::describe();
      info.memory_bytes = std::int64_t{64} << 20;
      return info;
    }
    Probes* probes() override { return cpu_->probes(); }

   private:
    std::unique_ptr<Backend> cpu_ = make_cpu_backend({.num_threads = 2});
  } backend;
  ScriptedRanks ranks;
  const StreamRates rates = probe_streams(backend, ranks.together());
  EXPECT_EQ(rates.streamed_bytes, std::int64_t{8} << 20);
  EXPECT_GT(*rates.read_bytes_per_s, 0);
  EXPECT_GT(*rates.copy_bytes_per_s, 0);
}

}  // namespace
}  // namespace epsweep
