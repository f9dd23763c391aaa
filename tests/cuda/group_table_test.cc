// Groups as the device sees them, worked out by hand.
#include "cuda/group_table.h"

#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "device_array.h"

namespace epsweep::cuda {
namespace {

template <typename T>
std::vector<T> host_copy(const T* device, int count) {
  std::vector<T> values(static_cast<std::size_t>(count));
  EPS_CUDA(cudaMemcpy(values.data(), device, values.size() * sizeof(T), cudaMemcpyDeviceToHost));
  return values;
}

// Addresses that nothing reads.
void* address(std::uint64_t value) {
  return reinterpret_cast<void*>(value);
}

struct Described {
  int count = 0;
  std::vector<const void*> w, x;
  std::vector<void*> y;
  std::vector<std::int64_t> stride_k, stride_n;
  std::vector<std::int32_t> shape, n, rows, k;
};

Described describe(const GemmShape& shape, const std::vector<std::int64_t>& rows) {
  GroupTable table(shape);
  TestStream stream;
  Described got;
  got.count =
      table.describe(stream, {.x = address(0x100), .w = address(0x1000), .y = address(0x200)}, rows)
          .count;
  stream.synchronize();
  const GroupArrays& at = table.arrays();
  got.w = host_copy(at.w, got.count);
  got.x = host_copy(at.x, got.count);
  got.y = host_copy(at.y, got.count);
  got.stride_k = host_copy(at.stride_k, got.count);
  got.stride_n = host_copy(at.stride_n, got.count);
  got.shape = host_copy(at.shape, 3 * got.count);
  got.n = host_copy(at.n, got.count);
  got.rows = host_copy(at.rows, got.count);
  got.k = host_copy(at.k, got.count);
  return got;
}

TEST(GroupTable, leaves_out_experts_without_rows) {
  const Described got =
      describe({.num_experts = 5, .n = 16, .k = 8, .dtype = DType::bf16}, {0, 3, 0, 1, 0});
  EXPECT_EQ(got.count, 2);
  EXPECT_EQ(got.shape, (std::vector<std::int32_t>{16, 3, 8, 16, 1, 8}));
  EXPECT_EQ(got.rows, (std::vector<std::int32_t>{3, 1}));
  EXPECT_EQ(got.n, (std::vector<std::int32_t>{16, 16}));
  EXPECT_EQ(got.k, (std::vector<std::int32_t>{8, 8}));
  EXPECT_EQ(got.stride_k, (std::vector<std::int64_t>{8, 8}));
  EXPECT_EQ(got.stride_n, (std::vector<std::int64_t>{16, 16}));
  // A weight matrix has 16 * 8 * 2 bytes, a row of x 16 and one of y 32.
  EXPECT_EQ(got.w, (std::vector<const void*>{address(0x1000 + 256), address(0x1000 + 3 * 256)}));
  EXPECT_EQ(got.x, (std::vector<const void*>{address(0x100), address(0x100 + 3 * 16)}));
  EXPECT_EQ(got.y, (std::vector<void*>{address(0x200), address(0x200 + 3 * 32)}));
}

TEST(GroupTable, has_no_groups_where_there_are_no_rows) {
  EXPECT_EQ(describe({.num_experts = 3, .n = 16, .k = 8}, {0, 0, 0}).count, 0);
}

// More experts than one launch describes, and offsets past 2^31 bytes in every matrix.
TEST(GroupTable, goes_on_over_many_experts_and_large_matrices) {
  constexpr int kExperts = 600;
  std::vector<std::int64_t> rows(kExperts, 0);
  for (std::size_t expert = 0; expert < rows.size(); expert += 2) rows[expert] = 100'000;
  const Described got =
      describe({.num_experts = kExperts, .n = 7168, .k = 4096, .dtype = DType::bf16}, rows);
  ASSERT_EQ(got.count, 300);
  for (std::uint64_t group = 0; group < 300; ++group) {
    const std::uint64_t row = group * 100'000;
    ASSERT_EQ(got.w[group], address(0x1000 + 2 * group * 7168 * 4096 * 2)) << group;
    ASSERT_EQ(got.x[group], address(0x100 + row * 4096 * 2)) << group;
    ASSERT_EQ(got.y[group], address(0x200 + row * 7168 * 2)) << group;
    ASSERT_EQ(got.rows[group], 100'000) << group;
  }
}

TEST(GroupTable, arrays_start_at_multiples_of_sixteen_bytes) {
  const GroupTable table({.num_experts = 3, .n = 16, .k = 8});
  const GroupArrays& at = table.arrays();
  for (const void* array : {static_cast<const void*>(at.w), static_cast<const void*>(at.x),
                            static_cast<const void*>(at.y), static_cast<const void*>(at.stride_k),
                            static_cast<const void*>(at.stride_n),
                            static_cast<const void*>(at.shape), static_cast<const void*>(at.n),
                            static_cast<const void*>(at.rows), static_cast<const void*>(at.k)}) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(array) % 16, 0U);
  }
}

TEST(GroupTable, refuses_rows_that_do_not_fit_an_index) {
  GroupTable table({.num_experts = 2, .n = 16, .k = 8});
  TestStream stream;
  const std::vector<std::int64_t> rows{1LL << 30, 1LL << 30};
  EXPECT_THROW(table.check(rows), RunError);
}

}  // namespace
}  // namespace epsweep::cuda
