// What is timed allocates nothing.
#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "gemm_case.h"

namespace {
std::atomic<std::int64_t> num_allocations = 0;
}

// For the whole test program; counting disturbs nobody.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++num_allocations;
  if (void* const memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace epsweep {
namespace {

TEST(Allocations, AreCounted) {
  const std::int64_t before = num_allocations;
  const std::vector<int> some(1000);
  EXPECT_EQ(num_allocations, before + 1);
  EXPECT_EQ(some.size(), 1000U);
}

// oneDNN allocates inside its own calls.
TEST(Allocations, ThereAreNoneInARunOfAmxAfterWarm) {
  for (const int num_threads : {1, 2}) {
    for (const DType dtype : {DType::bf16, DType::fp32}) {
      const GemmCase given{{4, 640, 96, dtype}, {300, 0, 17, 1}};
      const auto gemm = prepared("amx", given, num_threads);
      const Buffer x = given.input();
      Buffer y = given.output();
      const auto lane = inline_lane();
      gemm->warm(given.rows);
      const std::int64_t before = num_allocations;
      gemm->run(*lane, x, y, given.rows);
      EXPECT_EQ(num_allocations, before) << num_threads << " threads, " << to_string(dtype);
    }
  }
}

}  // namespace
}  // namespace epsweep
