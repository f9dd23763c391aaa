// What every CUDA transport must do, on real ranks over the doubles; any number of them.
#include "device/transport.h"

#include <algorithm>
#include <numeric>
#include <string>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "cuda/cuda_lane.h"
#include "cuda/cuda_memory.h"
#include "cuda/mpi_staged.h"
#include "cuda/nccl_version.h"
#include "device_array.h"
#include "hostcuda/device_memory.h"
#include "mpi/ep_group.h"
#include "support/mpi_world.h"

namespace epsweep::cuda {
namespace {

using Counts = std::vector<std::int64_t>;

// Rows from every rank to every rank of a group: [from][to]. About a third of the pairs have none.
std::vector<Counts> random_matrix(int size, std::uint64_t seed, std::uint64_t max_rows) {
  const RandomStream random(seed, Stream::test);
  std::vector<Counts> matrix(static_cast<std::size_t>(size));
  std::uint64_t index = 0;
  for (Counts& row : matrix) {
    for (int to = 0; to < size; ++to) {
      const bool none = random.below(index++, 3) == 0;
      row.push_back(none ? 0 : static_cast<std::int64_t>(random.below(index++, max_rows + 1)));
    }
  }
  return matrix;
}

Counts column(const std::vector<Counts>& matrix, int rank) {
  Counts counts;
  for (const Counts& row : matrix) counts.push_back(row[static_cast<std::size_t>(rank)]);
  return counts;
}

// Any byte of any row can be computed by any rank.
unsigned char byte_of(std::uint64_t salt, std::size_t from, std::size_t to, std::int64_t at) {
  const RandomStream random(salt, Stream::test, from, to);
  return static_cast<unsigned char>(random.bits(static_cast<std::uint64_t>(at)));
}

struct Shape {
  std::int64_t row_bytes = 0, capacity = 0;
};

enum class Side { send, recv };

// What the buffer of `self` holds on that side, row after row; unused rows of a section are 0xff.
std::vector<unsigned char> rows_of(std::uint64_t salt, Side side, const Counts& counts, int self,
                                   const Shape& shape) {
  std::vector<unsigned char> bytes;
  const auto own = static_cast<std::size_t>(self);
  for (std::size_t peer = 0; peer < counts.size(); ++peer) {
    const std::size_t from = side == Side::send ? own : peer, to = side == Side::send ? peer : own;
    for (std::int64_t at = 0; at < counts[peer] * shape.row_bytes; ++at) {
      bytes.push_back(byte_of(salt, from, to, at));
    }
    for (std::int64_t row = counts[peer]; row < shape.capacity; ++row) {
      bytes.insert(bytes.end(), static_cast<std::size_t>(shape.row_bytes), 0xff);
    }
  }
  return bytes;
}

Buffer device_copy(const std::vector<unsigned char>& host) {
  Buffer buffer = make_device_buffer(std::ssize(host));
  EPS_CUDA(cudaMemcpy(buffer.data(), host.data(), host.size(), cudaMemcpyHostToDevice));
  return buffer;
}

std::vector<unsigned char> host_copy(const Buffer& buffer) {
  std::vector<unsigned char> host(static_cast<std::size_t>(buffer.bytes()));
  EPS_CUDA(cudaMemcpy(host.data(), buffer.data(), host.size(), cudaMemcpyDeviceToHost));
  return host;
}

void expect_exchange(Transport& transport, const EpGroup& group, const std::vector<Counts>& matrix,
                     const Shape& shape, std::uint64_t salt) {
  const int self = group.ep_rank();
  const Counts sends = matrix[static_cast<std::size_t>(self)], receives = column(matrix, self);
  const auto payload = rows_of(salt, Side::send, sends, self, shape);
  const auto expected = rows_of(salt, Side::recv, receives, self, shape);
  Buffer send = device_copy(payload), recv = make_device_buffer(std::ssize(expected));
  CudaLane lane;
  transport.all_to_all_v(lane, send, recv, {sends, receives, shape.row_bytes, shape.capacity});
  lane.synchronize();
  EXPECT_EQ(host_copy(recv), expected) << "EP rank " << self << ", rows of " << shape.row_bytes;
  EXPECT_EQ(host_copy(send), payload) << "EP rank " << self;
}

void expect_counts(Transport& transport, const EpGroup& group, const std::vector<int>& slots) {
  const auto rows = [](int from, int to, int slot) {
    return (std::int64_t{from + 1} << 33) + to * 1000 + slot;
  };
  const int self = group.ep_rank(), own_slots = slots[static_cast<std::size_t>(self)];
  Counts sent, expected;
  for (int to = 0; to < group.ep_size(); ++to) {
    for (int slot = 0; slot < slots[static_cast<std::size_t>(to)]; ++slot) {
      sent.push_back(rows(self, to, slot));
    }
  }
  for (int from = 0; from < group.ep_size(); ++from) {
    for (int slot = 0; slot < own_slots; ++slot) expected.push_back(rows(from, self, slot));
  }
  const auto bytes = [](const Counts& counts) {
    return std::ssize(counts) * static_cast<std::int64_t>(sizeof(std::int64_t));
  };
  Buffer send = make_device_buffer(bytes(sent)), recv = make_device_buffer(bytes(expected));
  EPS_CUDA(cudaMemcpy(send.data(), sent.data(), static_cast<std::size_t>(bytes(sent)),
                      cudaMemcpyHostToDevice));
  CudaLane lane;
  transport.exchange_counts(lane, send, recv, slots);
  lane.synchronize();
  Counts received(expected.size(), -1);
  EPS_CUDA(cudaMemcpy(received.data(), recv.data(), static_cast<std::size_t>(bytes(expected)),
                      cudaMemcpyDeviceToHost));
  EXPECT_EQ(received, expected);
}

std::vector<std::string> cuda_transports() {
  std::vector<std::string> names;
  for (const std::string& name : TransportCatalog::instance().names()) {
    if (TransportCatalog::instance().at(name).backend == "cuda") names.push_back(name);
  }
  return names;
}

// A transport of one group, with what it needs of the world.
struct InGroup {
  InGroup(const std::string& name, const EpGroup& group) {
    const TransportEntry& entry = TransportCatalog::instance().at(name);
    if (entry.make_fabric != nullptr) fabric = entry.make_fabric(mpi_world(), &group);
    transport = entry.make(group, fabric.get());
  }
  void close() {
    transport->close();
    if (fabric != nullptr) fabric->close();
  }
  std::unique_ptr<Fabric> fabric;
  std::unique_ptr<Transport> transport;
};

class CudaTransport : public testing::TestWithParam<std::string> {
 protected:
  void TearDown() override { all_.close(); }
  int size() const { return group_.ep_size(); }
  Transport& transport() { return *all_.transport; }
  static bool fixed() {
    return TransportCatalog::instance().at(GetParam()).capacity == Capacity::fixed;
  }
  static Shape shape(std::int64_t row_bytes) { return {row_bytes, fixed() ? 9 : 0}; }

  const EpGroup group_{mpi_world(), 0, 1};
  InGroup all_{GetParam(), group_};
};

TEST_P(CudaTransport, rows_of_all_sizes_arrive) {
  std::uint64_t seed = 1;
  for (const std::int64_t row_bytes : {1, 7, 256, 1000}) {
    for (int repeat = 0; repeat < 3; ++repeat, ++seed) {
      expect_exchange(transport(), group_, random_matrix(size(), seed, 9), shape(row_bytes), seed);
    }
  }
}

TEST_P(CudaTransport, ranks_with_nothing_take_part) {
  std::vector<Counts> matrix(static_cast<std::size_t>(size()),
                             Counts(static_cast<std::size_t>(size())));
  expect_exchange(transport(), group_, matrix, shape(64), 7);
  for (Counts& row : matrix) row.back() = 5;
  expect_exchange(transport(), group_, matrix, shape(64), 8);
  for (std::size_t rank = 0; rank < matrix.size(); ++rank) {
    matrix[rank].assign(matrix.size(), 0);
    matrix[rank][rank] = 4;
  }
  expect_exchange(transport(), group_, matrix, shape(64), 9);
}

TEST_P(CudaTransport, counts_arrive_at_their_slots) {
  for (const int num_experts : {0, 1, 3, 8, 64}) {
    std::vector<int> slots;
    for (int rank = 0; rank < size(); ++rank) {
      slots.push_back(num_experts / size() + (rank < num_experts % size() ? 1 : 0));
    }
    expect_counts(transport(), group_, slots);
  }
}

TEST_P(CudaTransport, groups_at_once_are_independent) {
  const Comm& world = mpi_world();
  const int which = world.rank() % 2;
  EpGroup half(world.split(which, world.rank()), which, world.size() > 1 ? 2 : 1);
  InGroup halves(GetParam(), half);
  for (std::uint64_t round = 0; round < 5; ++round) {
    const std::uint64_t seed = 100 * round + static_cast<std::uint64_t>(which);
    expect_exchange(*halves.transport, half, random_matrix(half.ep_size(), seed, 5), shape(410),
                    seed);
    expect_counts(*halves.transport, half,
                  std::vector<int>(static_cast<std::size_t>(half.ep_size()), 1 + which));
  }
  halves.close();
  half.close();
}

TEST_P(CudaTransport, counts_that_do_not_fit_are_refused) {
  CudaLane lane;
  Buffer send = make_device_buffer(64), recv = make_device_buffer(64);
  const auto ranks = static_cast<std::size_t>(size());
  const Counts none(ranks);
  Counts too_many(ranks), negative(ranks), huge(ranks);
  too_many.back() = 9;
  negative.front() = -1;
  huge.back() = INT64_MAX / 8 + 2;
  const auto exchange = [&](const Counts& sends, const Counts& receives, std::int64_t row_bytes) {
    const std::int64_t capacity = fixed() ? 8 / size() : 0;
    transport().all_to_all_v(lane, send, recv, {sends, receives, row_bytes, capacity});
  };
  EXPECT_THROW(exchange(too_many, none, 8), RunError);
  EXPECT_THROW(exchange(none, too_many, 8), RunError);
  EXPECT_THROW(exchange(negative, none, 8), RunError);
  EXPECT_THROW(exchange(huge, none, 8), RunError);
  EXPECT_THROW(exchange(none, none, 0), RunError);
  EXPECT_THROW(exchange(Counts(ranks + 1), none, 8), RunError);
  Counts own(ranks);
  own[static_cast<std::size_t>(group_.ep_rank())] = 1;
  EXPECT_THROW(exchange(own, none, 8), RunError);
  const std::vector<int> slots(ranks, 9);
  EXPECT_THROW(transport().exchange_counts(lane, send, recv, slots), RunError);
}

INSTANTIATE_TEST_SUITE_P(Catalog, CudaTransport, testing::ValuesIn(cuda_transports()),
                         [](const auto& param_info) { return param_info.param; });

// The buffers would hold the rows; the sections do not.
TEST(NcclAlltoall, refuses_more_rows_than_a_pair_has_room_for_before_anything_is_touched) {
  const EpGroup group(mpi_world(), 0, 1);
  InGroup all("nccl_alltoall", group);
  const auto ranks = static_cast<std::size_t>(group.ep_size());
  Counts full(ranks, 2), none(ranks);
  full.front() = 3;
  CudaLane lane;
  const auto bytes = static_cast<std::int64_t>(ranks) * 2 * 16;
  Buffer send = make_device_buffer(bytes + 16), recv = make_device_buffer(bytes + 16);
  const auto exchange = [&](const Counts& sends, const Counts& receives) {
    all.transport->all_to_all_v(lane, send, recv, {sends, receives, 16, 2});
  };
  EXPECT_THROW(exchange(full, none), RunError);
  EXPECT_THROW(exchange(none, full), RunError);
  lane.synchronize();
  EXPECT_EQ(host_copy(recv),
            std::vector<unsigned char>(static_cast<std::size_t>(bytes + 16), 0xff));
  // No section, or buffers that end inside the last one.
  EXPECT_THROW(all.transport->all_to_all_v(lane, send, recv, {none, none, 16, 0}), RunError);
  EXPECT_THROW(all.transport->all_to_all_v(lane, send, recv, {none, none, 16, 4}), RunError);
  all.close();
}

// Sections and counts, captured once; what is sent changes between replays.
TEST(NcclAlltoall, can_be_captured_and_replayed) {
  const EpGroup group(mpi_world(), 0, 1);
  InGroup all("nccl_alltoall", group);
  const auto ranks = static_cast<std::size_t>(group.ep_size());
  const Counts one_each(ranks, 1);
  const std::vector<int> slots(ranks, 1);
  const auto bytes = static_cast<std::int64_t>(ranks * sizeof(std::int64_t));
  Buffer counts = make_device_buffer(bytes), their_counts = make_device_buffer(bytes);
  Buffer rows = make_device_buffer(bytes), their_rows = make_device_buffer(bytes);
  CudaLane lane;
  lane.begin_capture();
  all.transport->exchange_counts(lane, counts, their_counts, slots);
  all.transport->all_to_all_v(lane, rows, their_rows, {one_each, one_each, 8, 1});
  const auto replay = lane.end_capture();
  const auto self = static_cast<std::int64_t>(group.ep_rank());
  for (std::int64_t round = 1; round < 4; ++round) {
    Counts expected_counts, expected_rows;
    for (std::int64_t peer = 0; peer < group.ep_size(); ++peer) {
      const auto at = static_cast<std::size_t>(peer);
      counts.as<std::int64_t>()[at] = 100 * round + 10 * self + peer;
      rows.as<std::int64_t>()[at] = -counts.as<std::int64_t>()[at];
      expected_counts.push_back(100 * round + 10 * peer + self);
      expected_rows.push_back(-expected_counts.back());
    }
    replay->enqueue(lane);
    lane.synchronize();
    EXPECT_TRUE(std::ranges::equal(their_counts.as<std::int64_t>(), expected_counts));
    EXPECT_TRUE(std::ranges::equal(their_rows.as<std::int64_t>(), expected_rows));
  }
  all.close();
}

// What the double is for: NCCL itself would hang, or mix the ranks' rows.
TEST(NcclAlltoall, of_different_sizes_is_noticed) {
  if (mpi_world().size() == 1) GTEST_SKIP() << "one rank agrees with itself";
  const EpGroup group(mpi_world(), 0, 1);
  InGroup all("nccl_alltoall", group);
  const auto ranks = static_cast<std::size_t>(group.ep_size());
  const Counts none(ranks);
  Buffer send = make_device_buffer(16 * group.ep_size());
  Buffer recv = make_device_buffer(16 * group.ep_size());
  CudaLane lane;
  const std::int64_t capacity = group.ep_rank() == 0 ? 2 : 1;
  // Rank 0 differs from everybody else, and they from it. Streams may run ahead of the wait.
  EXPECT_THROW(
      {
        all.transport->all_to_all_v(lane, send, recv, {none, none, 8, capacity});
        lane.synchronize();
      },
      std::logic_error);
  all.close();
}

TEST(NcclAlltoall, refuses_old_libraries_by_name) {
  EXPECT_EQ(all_to_all_refusal({.built = 22809, .loaded = 22800}), std::nullopt);
  EXPECT_EQ(all_to_all_refusal({.built = 22703, .loaded = 22809}),
            "ncclAlltoAll came with NCCL 2.28, this program was built with 2.27.3");
  EXPECT_EQ(all_to_all_refusal({.built = 22809, .loaded = 21805}),
            "ncclAlltoAll came with NCCL 2.28, the library that was loaded is 2.18.5");
  EXPECT_EQ(all_to_all_refusal({.built = 22809, .loaded = 2708}),
            "ncclAlltoAll came with NCCL 2.28, the library that was loaded is 2.7.8");
}

TEST(MpiStaged, messages_are_split_at_the_limit) {
  const EpGroup group(mpi_world(), 0, 1);
  const auto transport = make_mpi_staged(group, 100);
  expect_exchange(*transport, group, random_matrix(group.ep_size(), 3, 9), {99, 0}, 3);
  expect_exchange(*transport, group, random_matrix(group.ep_size(), 4, 9), {101, 0}, 4);
}

TEST(MpiStaged, page_locked_memory_grows_with_the_largest_exchange_only) {
  const EpGroup group(mpi_world(), 0, 1);
  const auto transport = make_mpi_staged(group, 1 << 20);
  const std::vector<Counts> large(static_cast<std::size_t>(group.ep_size()),
                                  Counts(static_cast<std::size_t>(group.ep_size()), 9));
  expect_exchange(*transport, group, large, {64, 0}, 1);
  const long long before = hostcuda::page_locked_allocations();
  for (std::uint64_t seed = 2; seed < 6; ++seed) {
    expect_exchange(*transport, group, random_matrix(group.ep_size(), seed, 9), {64, 0}, seed);
  }
  EXPECT_EQ(hostcuda::page_locked_allocations(), before);
}

}  // namespace
}  // namespace epsweep::cuda
