#include "ceilings/exchange_probe.h"

#include <gtest/gtest.h>

#include "scripted_device.h"

namespace epsweep {
namespace {

// alpha 5 us and beta 2 GB/s for what goes to others; counts take 3 us.
class ScriptedTransport final : public Transport {
 public:
  explicit ScriptedTransport(ScriptedClock& clock) : clock_(clock) {}
  void exchange_counts(Lane&, const Buffer& send, Buffer& recv,
                       std::span<const int> slots_of_rank) override {
    EPS_EXPECT(send.bytes() == recv.bytes() && slots_of_rank.size() == 4, "one slot for each rank");
    clock_.now_s += 3e-6;
  }
  void all_to_all_v(Lane&, const Buffer& send, Buffer& recv, const ExchangeRows& rows) override {
    std::int64_t sent = 0;
    for (const std::int64_t count : rows.send) sent += count;
    EPS_EXPECT(rows.send[1] == 0, "own rows stay");
    EPS_EXPECT(4 * rows.send[0] * rows.row_bytes <= std::min(send.bytes(), recv.bytes()),
               "sections of all ranks fit");
    capacity = rows.capacity;
    clock_.now_s += 5e-6 + static_cast<double>(sent * rows.row_bytes) / 2e9;
  }
  void close() override {}

  std::int64_t capacity = -1;

 private:
  ScriptedClock& clock_;
};

class ExchangeProbe : public testing::Test {
 protected:
  ExchangeTimes probe(double budget_s, Capacity capacity = Capacity::exact) {
    return probe_exchange(device, transport, {.ep_size = 4, .ep_rank = 1, .capacity = capacity},
                          budget_s, ranks.together());
  }
  ScriptedDevice device;
  ScriptedTransport transport{device.clock};
  ScriptedRanks ranks;
};

TEST_F(ExchangeProbe, ClimbsFrom64BytesTo4MiBInStepsOfFour) {
  const ExchangeTimes times = probe(1e3);
  ASSERT_EQ(times.ladder.size(), 9U);
  EXPECT_EQ(times.ladder.front().bytes_per_peer, 64);
  EXPECT_EQ(times.ladder.back().bytes_per_peer, 4 << 20);
  EXPECT_EQ(times.ladder[1].bytes_per_peer, 256);
  ASSERT_EQ(times.ladder[1].seconds.size(), 9U);
  EXPECT_NEAR(times.ladder[1].seconds[8], 5e-6 + 3 * 256 / 2e9, 1e-12);
  ASSERT_EQ(times.count_seconds.size(), 9U);
  EXPECT_NEAR(times.count_seconds[0], 3e-6, 1e-12);
  EXPECT_EQ(transport.capacity, 0);
}

// 16 KiB take 30 us: the next rung promises 11 * 4 * 30 us = 1.3 ms.
TEST_F(ExchangeProbe, StopsWhereTheNextRungIsTooLong) {
  const ExchangeTimes times = probe(1e-3);
  EXPECT_EQ(times.ladder.back().bytes_per_peer, 16 << 10);
}

TEST_F(ExchangeProbe, BuffersTakeASixteenthOfTheMemory) {
  device.memory_bytes = std::int64_t{16} << 20;  // 1 MiB a buffer, a quarter for each rank
  EXPECT_EQ(probe(1e3).ladder.back().bytes_per_peer, 256 << 10);
}

TEST_F(ExchangeProbe, TransportsOfFixedCapacityGetOne) {
  probe(1e3, Capacity::fixed);
  EXPECT_EQ(transport.capacity, (4 << 20) / 64);
}

TEST_F(ExchangeProbe, AGroupOfOneExchangesNothing) {
  const ExchangeTimes times =
      probe_exchange(device, transport, {.ep_size = 1}, 1, ranks.together());
  EXPECT_TRUE(times.ladder.empty());
  EXPECT_TRUE(times.count_seconds.empty());
}

}  // namespace
}  // namespace epsweep
