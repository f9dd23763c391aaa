// What every CPU transport must do, on real ranks; any number of them.
#include "device/transport.h"

#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "cpu/pairwise.h"
#include "mpi/ep_group.h"
#include "support/host_view.h"
#include "support/mpi_world.h"

namespace epsweep {
namespace {

constexpr unsigned char kPoison = 0xff;
constexpr std::int64_t kGuardBytes = 256;  // behind the last row

class NoLane : public Lane {
  void synchronize() override {}
};

using Counts = std::vector<std::int64_t>;

// Rows from every rank to every rank of a group.
struct RowMatrix {
  explicit RowMatrix(int size) : rows(static_cast<std::size_t>(size)) {
    for (Counts& row : rows) row.resize(static_cast<std::size_t>(size));
  }
  Counts sent_by(int rank) const { return rows[static_cast<std::size_t>(rank)]; }
  Counts received_by(int rank) const {
    Counts column;
    for (const Counts& row : rows) column.push_back(row[static_cast<std::size_t>(rank)]);
    return column;
  }
  std::int64_t& at(int from, int to) {
    return rows[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
  }
  std::vector<Counts> rows;
};

// About a third of the pairs have nothing to send.
RowMatrix random_matrix(int size, std::uint64_t seed, std::uint64_t max_rows) {
  const RandomStream stream(seed, Stream::test);
  RowMatrix matrix(size);
  std::uint64_t index = 0;
  for (Counts& row : matrix.rows) {
    for (std::int64_t& count : row) {
      const bool none = stream.below(index++, 3) == 0;
      count = none ? 0 : static_cast<std::int64_t>(stream.below(index++, max_rows + 1));
    }
  }
  return matrix;
}

// Any byte of any row can be computed by any rank.
unsigned char byte_of(std::uint64_t salt, int from, int to, std::int64_t row, std::int64_t byte) {
  const RandomStream stream(salt, Stream::test, static_cast<std::uint64_t>(from),
                            static_cast<std::uint64_t>(to), static_cast<std::uint64_t>(row));
  return static_cast<unsigned char>(stream.bits(static_cast<std::uint64_t>(byte / 8)) >>
                                    (8 * (byte % 8)));
}

Buffer poisoned_buffer(std::int64_t bytes) {
  Buffer buffer(std::malloc(static_cast<std::size_t>(bytes + kGuardBytes)), bytes, std::free);
  std::memset(buffer.data(), kPoison, static_cast<std::size_t>(bytes + kGuardBytes));
  return buffer;
}

std::int64_t sum(const Counts& counts) {
  std::int64_t total = 0;
  for (const std::int64_t count : counts) total += count;
  return total;
}

enum class Side { send, recv };

// What the buffer of `self` must hold, rows in rank order without gaps.
std::vector<unsigned char> rows_of(std::uint64_t salt, Side side, const Counts& counts, int self,
                                   std::int64_t row_bytes) {
  std::vector<unsigned char> bytes;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    const int peer = static_cast<int>(rank);
    for (std::int64_t row = 0; row < counts[rank]; ++row) {
      for (std::int64_t byte = 0; byte < row_bytes; ++byte) {
        bytes.push_back(side == Side::send ? byte_of(salt, self, peer, row, byte)
                                           : byte_of(salt, peer, self, row, byte));
      }
    }
  }
  return bytes;
}

// Position of the first byte that differs; -1 for none.
std::int64_t first_difference(const Buffer& buffer, const std::vector<unsigned char>& expected) {
  const auto* bytes = static_cast<const unsigned char*>(buffer.data());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (bytes[i] != expected[i]) return static_cast<std::int64_t>(i);
  }
  for (std::int64_t i = 0; i < kGuardBytes; ++i) {
    if (bytes[std::ssize(expected) + i] != kPoison) return std::ssize(expected) + i;
  }
  return -1;
}

void expect_exchange(Transport& transport, const EpGroup& group, const RowMatrix& matrix,
                     std::int64_t row_bytes, std::uint64_t salt) {
  const int self = group.ep_rank();
  const Counts sends = matrix.sent_by(self), receives = matrix.received_by(self);
  Buffer send = poisoned_buffer(sum(sends) * row_bytes);
  Buffer recv = poisoned_buffer(sum(receives) * row_bytes);
  const auto payload = rows_of(salt, Side::send, sends, self, row_bytes);
  if (!payload.empty()) std::memcpy(send.data(), payload.data(), payload.size());
  NoLane lane;
  transport.all_to_all_v(lane, send, recv, {sends, receives, row_bytes});
  EXPECT_EQ(first_difference(recv, rows_of(salt, Side::recv, receives, self, row_bytes)), -1)
      << "received, EP rank " << self << ", rows of " << row_bytes;
  EXPECT_EQ(first_difference(send, payload), -1) << "sent, EP rank " << self;
}

std::vector<std::string> cpu_transports() {
  std::vector<std::string> names;
  for (const std::string& name : TransportCatalog::instance().names()) {
    if (TransportCatalog::instance().at(name).backend == "cpu") names.push_back(name);
  }
  return names;
}

// One transport over all ranks.
class CpuTransport : public testing::TestWithParam<std::string> {
 protected:
  static std::unique_ptr<Transport> make(const EpGroup& group) {
    return TransportCatalog::instance().at(GetParam()).make(group, nullptr);
  }
  void TearDown() override {
    transport_->close();
    EXPECT_EQ(mpi_world().all_sum(std::int64_t{1}), mpi_world().size());
  }
  int size() const { return group_.ep_size(); }

  const EpGroup group_{mpi_world(), 0, 1};
  std::unique_ptr<Transport> transport_ = make(group_);
};

TEST(CpuTransports, BothAreInTheCatalog) {
  EXPECT_TRUE(TransportCatalog::instance().contains("pairwise"));
  EXPECT_TRUE(TransportCatalog::instance().contains("alltoallv"));
}

TEST_P(CpuTransport, RandomRowsOfAllSizes) {
  std::uint64_t seed = 1;
  for (const std::int64_t row_bytes : {1, 7, 256, 4095, 4096, 4097, 14336}) {
    for (int repeat = 0; repeat < 3; ++repeat, ++seed) {
      expect_exchange(*transport_, group_, random_matrix(size(), seed, 9), row_bytes, seed);
    }
  }
}

TEST_P(CpuTransport, LargeRows) {
  for (const std::int64_t row_bytes : {(1 << 19) + 1, 1 << 20}) {
    expect_exchange(*transport_, group_, random_matrix(size(), 77, 2), row_bytes, 77);
  }
}

TEST_P(CpuTransport, AllToOneRank) {
  for (int to = 0; to < size(); ++to) {
    RowMatrix matrix(size());
    for (int from = 0; from < size(); ++from) matrix.at(from, to) = 3 + from;
    expect_exchange(*transport_, group_, matrix, 1030, 5);
  }
}

TEST_P(CpuTransport, OneRankWithNothing) {
  for (int nobody = 0; nobody < size(); ++nobody) {
    RowMatrix matrix(size());
    for (int from = 0; from < size(); ++from) {
      for (int to = 0; to < size(); ++to) {
        matrix.at(from, to) = from == nobody || to == nobody ? 0 : 1 + from + 2 * to;
      }
    }
    expect_exchange(*transport_, group_, matrix, 514, 6);
  }
}

TEST_P(CpuTransport, SelfOnlyAndNothingAtAll) {
  RowMatrix matrix(size());
  expect_exchange(*transport_, group_, matrix, 4096, 7);
  for (int rank = 0; rank < size(); ++rank) matrix.at(rank, rank) = 4 + rank;
  expect_exchange(*transport_, group_, matrix, 4096, 7);
}

// slots: how many experts each rank holds.
void expect_counts(Transport& transport, const EpGroup& group, const std::vector<int>& slots) {
  const auto rows = [](int from, int to, int slot) {
    return (std::int64_t{from + 1} << 33) + to * 1000 + slot;
  };
  const int self = group.ep_rank(), own_slots = slots[static_cast<std::size_t>(self)];
  Counts send, expected;
  for (int to = 0; to < group.ep_size(); ++to) {
    for (int slot = 0; slot < slots[static_cast<std::size_t>(to)]; ++slot) {
      send.push_back(rows(self, to, slot));
    }
  }
  for (int from = 0; from < group.ep_size(); ++from) {
    for (int slot = 0; slot < own_slots; ++slot) expected.push_back(rows(from, self, slot));
  }
  Counts recv(expected.size(), -1);
  NoLane lane;
  Buffer received = host_view(recv);
  transport.exchange_counts(lane, host_view(send), received, slots);
  EXPECT_EQ(recv, expected);
}

TEST_P(CpuTransport, CountsArriveAtTheirSlots) {
  for (const int num_experts : {0, 1, 3, 5, 8, 64}) {
    std::vector<int> slots;
    for (int rank = 0; rank < size(); ++rank) {
      slots.push_back(num_experts / size() + (rank < num_experts % size() ? 1 : 0));
    }
    expect_counts(*transport_, group_, slots);
  }
  std::vector<int> last_only(static_cast<std::size_t>(size()));
  last_only.back() = 6;
  expect_counts(*transport_, group_, last_only);
}

TEST_P(CpuTransport, CountsExchangedAgreeWithRowsMoved) {
  const RowMatrix matrix = random_matrix(size(), 31, 12);
  const std::vector<int> one_slot_each(static_cast<std::size_t>(size()), 1);
  Counts received(static_cast<std::size_t>(size()), -1);
  NoLane lane;
  Buffer arrived = host_view(received);
  transport_->exchange_counts(lane, host_view(matrix.sent_by(group_.ep_rank())), arrived,
                              one_slot_each);
  EXPECT_EQ(received, matrix.received_by(group_.ep_rank()));
  expect_exchange(*transport_, group_, matrix, 333, 31);
}

TEST_P(CpuTransport, TwoGroupsAtOnceAreIndependent) {
  const Comm& world = mpi_world();
  const int which = world.rank() % 2;
  EpGroup half(world.split(which, world.rank()), which, world.size() > 1 ? 2 : 1);
  const auto transport = make(half);
  for (std::uint64_t round = 0; round < 20; ++round) {
    const std::uint64_t seed = 100 * round + static_cast<std::uint64_t>(which);
    expect_exchange(*transport, half, random_matrix(half.ep_size(), seed, 5), 4100, seed);
    expect_counts(*transport, half,
                  std::vector<int>(static_cast<std::size_t>(half.ep_size()), 1 + which));
  }
  transport->close();
  half.close();
}

TEST_P(CpuTransport, RefusesCountsThatDoNotFit) {
  NoLane lane;
  Buffer send = poisoned_buffer(64), recv = poisoned_buffer(64);
  const auto ranks = static_cast<std::size_t>(size());
  const Counts none(ranks);
  Counts too_many(ranks), negative(ranks);
  too_many.back() = 9;
  negative.front() = -1;
  const auto exchange = [&](const Counts& sends, const Counts& receives, std::int64_t row_bytes) {
    transport_->all_to_all_v(lane, send, recv, {sends, receives, row_bytes});
  };
  EXPECT_THROW(exchange(too_many, none, 8), RunError);
  EXPECT_THROW(exchange(none, too_many, 8), RunError);
  EXPECT_THROW(exchange(negative, none, 8), RunError);
  EXPECT_THROW(exchange(none, none, 0), RunError);
  EXPECT_THROW(exchange(Counts(ranks + 1), none, 8), RunError);
  Counts own(ranks);
  own[static_cast<std::size_t>(group_.ep_rank())] = 1;
  EXPECT_THROW(exchange(own, none, 8), RunError);
  const std::vector<int> slots(ranks, 1);
  Buffer own_counts = host_view(own);
  const Counts one_more(ranks + 1);
  EXPECT_THROW(transport_->exchange_counts(lane, host_view(one_more), own_counts, slots), RunError);
}

INSTANTIATE_TEST_SUITE_P(Catalog, CpuTransport, testing::ValuesIn(cpu_transports()),
                         [](const auto& param_info) { return param_info.param; });

// A buffer that says it is large: the refusal comes before anything is touched.
TEST(Alltoallv, RefusesWhatMpiCannotCountBeforeMovingAnything) {
  constexpr std::int64_t kRows = std::int64_t{std::numeric_limits<int>::max()} + 1;
  const EpGroup group(mpi_world(), 0, 1);
  const auto transport = TransportCatalog::instance().at("alltoallv").make(group, nullptr);
  Buffer send(nullptr, 2 * kRows, [](void*) {}), recv(nullptr, 2 * kRows, [](void*) {});
  Counts counts(static_cast<std::size_t>(group.ep_size()));
  counts[static_cast<std::size_t>(group.ep_rank())] = kRows;
  NoLane lane;
  try {
    transport->all_to_all_v(lane, send, recv, {counts, counts, 1});
    ADD_FAILURE() << "accepted";
  } catch (const RunError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("transport alltoallv"), std::string::npos) << text;
    EXPECT_NE(text.find("2147483648 rows"), std::string::npos) << text;
  }
  transport->close();
}

TEST(Pairwise, SplitsMessagesAtItsLimit) {
  const EpGroup group(mpi_world(), 0, 1);
  for (const std::int64_t limit : {1, 100, 4096}) {
    const auto transport = make_pairwise(group, limit);
    for (const std::int64_t row_bytes : {1, 99, 100, 101}) {
      expect_exchange(*transport, group, random_matrix(group.ep_size(), 9, 5), row_bytes, 9);
    }
    expect_counts(*transport, group,
                  std::vector<int>(static_cast<std::size_t>(group.ep_size()), 3));
    transport->close();
  }
}

}  // namespace
}  // namespace epsweep
