// Transport local_copy on real ranks; any number of them.
#include "pipeline/local_copy.h"

#include <cstring>
#include <numeric>

#include <gtest/gtest.h>

#include "base/random.h"
#include "mpi/ep_group.h"
#include "support/layer_fixture.h"
#include "support/mpi_world.h"

namespace epsweep {
namespace {

struct Calls {
  int counts = 0, rows = 0;
};

class Counted final : public Transport {
 public:
  Counted(std::unique_ptr<Transport> inner, Calls& calls)
      : inner_(std::move(inner)), calls_(calls) {}
  void exchange_counts(Lane& lane, const Buffer& send, Buffer& recv,
                       std::span<const int> slots) override {
    ++calls_.counts;
    inner_->exchange_counts(lane, send, recv, slots);
  }
  void all_to_all_v(Lane& lane, const Buffer& send, Buffer& recv,
                    const ExchangeRows& rows) override {
    ++calls_.rows;
    inner_->all_to_all_v(lane, send, recv, rows);
  }
  void close() override { inner_->close(); }

 private:
  std::unique_ptr<Transport> inner_;
  Calls& calls_;
};

using Counts = std::vector<std::int64_t>;

// Rows from a rank to another in an exchange: ragged, and a third of them none. In exchange 2
// nobody sends anything.
std::int64_t num_rows(int exchange, int from, int to) {
  const RandomStream stream(17, Stream::test, static_cast<std::uint64_t>(exchange),
                            static_cast<std::uint64_t>(from), static_cast<std::uint64_t>(to));
  return exchange == 2 || stream.below(0, 3) == 0 ? 0
                                                  : static_cast<std::int64_t>(stream.below(1, 7));
}

// One rank's part of an exchange, and what must arrive: every byte names exchange and source.
struct Part {
  Part(int exchange, const EpGroup& group, Backend& backend) {
    const int self = group.ep_rank();
    for (int rank = 0; rank < group.ep_size(); ++rank) {
      sent.push_back(num_rows(exchange, self, rank));
      received.push_back(num_rows(exchange, rank, self));
      expected.insert(expected.end(), static_cast<std::size_t>(received.back() * kRowBytes),
                      static_cast<unsigned char>(exchange * 16 + rank + 1));
    }
    const std::int64_t rows = std::accumulate(sent.begin(), sent.end(), std::int64_t{0});
    send = backend.make_buffer(rows * kRowBytes);
    recv = backend.make_buffer(std::ssize(expected));
    if (rows > 0) {
      std::memset(send.data(), exchange * 16 + self + 1, static_cast<std::size_t>(send.bytes()));
    }
  }
  void move(Transport& transport, Lane& lane, Backend& backend) {
    backend.poison(recv);
    transport.all_to_all_v(lane, send, recv,
                           {.send = sent, .recv = received, .row_bytes = kRowBytes});
    if (!expected.empty()) {
      EXPECT_EQ(std::memcmp(recv.data(), expected.data(), expected.size()), 0);
    }
  }
  static constexpr std::int64_t kRowBytes = 33;
  Counts sent, received;
  std::vector<unsigned char> expected;
  Buffer send, recv;
};

// Ranks replay alone and as often as they like: if anything still travelled, they would wait for
// each other for ever, or count.
TEST(LocalCopy, ReplaysRaggedRowsWithoutTheOtherRanks) {
  const EpGroup group(mpi_world(), 0, 1);
  const auto backend = make_cpu_backend({.num_threads = 1});
  const auto lane = backend->make_lane();
  Calls calls;
  const auto transport =
      make_local_copy(std::make_unique<Counted>(
                          TransportCatalog::instance().at("pairwise").make(group, nullptr), calls),
                      *backend);
  std::vector<Part> parts;
  for (int exchange = 0; exchange < 6; ++exchange) parts.emplace_back(exchange, group, *backend);
  const auto run_layer = [&](int routing) {
    transport->begin_layer(routing);
    for (int i = 0; i < 2; ++i) {
      parts[static_cast<std::size_t>(2 * routing + i)].move(*transport, *lane, *backend);
    }
  };
  for (int routing = 0; routing < 3; ++routing) run_layer(routing);
  transport->end_rehearsal();
  for (int repeat = 0; repeat <= group.ep_rank(); ++repeat) {
    for (const int routing : {2, 0, 1}) run_layer(routing);
  }
  EXPECT_EQ(calls.rows, 6);
  EXPECT_EQ(mpi_world().all_sum(std::int64_t{1}), mpi_world().size());
  transport->close();
}

// All layers once with the exchange, then again on poisoned buffers with the copies.
void expect_bits_of_the_exchange(const SweepPoint& point) {
  const EpGroup group(mpi_world(), 0, 1);
  const auto backend = make_cpu_backend({.num_threads = 1});
  const auto make = [&group] {
    return TransportCatalog::instance().at("pairwise").make(group, nullptr);
  };
  const auto real = make();
  const LayerOutputs wanted =
      run_layers(point, group.ep_rank(), *real, catalog_gemm(point), *backend);
  real->close();
  Calls calls;
  const auto copied = make_local_copy(std::make_unique<Counted>(make(), calls), *backend);
  run_layers(point, group.ep_rank(), *copied, catalog_gemm(point), *backend);
  copied->end_rehearsal();
  const LayerOutputs got =
      run_layers(point, group.ep_rank(), *copied, catalog_gemm(point), *backend);
  copied->close();
  EXPECT_EQ(got.of_layer, wanted.of_layer) << point_label(point);
  EXPECT_TRUE(got.counts_match);
  EXPECT_TRUE(check_outputs(got).passed());
  EXPECT_EQ(calls.counts, point.num_routings());
  EXPECT_EQ(calls.rows, 2 * point.num_routings());
}

// 37 tokens are ragged, and 3 leave ranks of a wide group without any.
TEST(LocalCopy, LayersHaveTheBitsOfTheExchange) {
  for (const ExchangeUnit unit : {ExchangeUnit::assignment, ExchangeUnit::rank}) {
    for (const std::int64_t tokens : {37, 3}) {
      SweepPoint point = layer_point(mpi_world().size(), tokens);
      point.exchange_unit = unit;
      point.placement = "random";
      point.dtype = DType::bf16;
      point.layers = 2;
      point.vary_routing = 2;
      point.transport = "local_copy";
      expect_bits_of_the_exchange(point);
    }
  }
}

}  // namespace
}  // namespace epsweep
