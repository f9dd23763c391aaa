// What grouped matrix products read on the device about each group, written there by a kernel.
// C++17.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace epsweep::cuda {

// Groups that one launch describes: their rows travel as a kernel argument, so no memory of the
// host is read once the call has returned.
constexpr int kGroupsOfLaunch = 256;

// Experts with rows, in order: group g is expert[g] and has rows [begin[g], begin[g + 1]).
struct GroupRows {
  std::int32_t expert[kGroupsOfLaunch];
  std::int32_t begin[kGroupsOfLaunch + 1];
};

// y[rows][n] = x[rows][k] * w[expert][n][k]^T, packed.
struct GroupOperands {
  const void* x = nullptr;
  const void* w = nullptr;
  void* y = nullptr;
  std::int64_t n = 0, k = 0, element_bytes = 0;
};

// One entry per group; every array starts at a multiple of 16 bytes.
struct GroupArrays {
  const void** w = nullptr;
  const void** x = nullptr;
  void** y = nullptr;
  std::int64_t* stride_k = nullptr;  // k: elements between rows of w and of x
  std::int64_t* stride_n = nullptr;  // n: elements between rows of y
  std::int32_t* shape = nullptr;     // n, rows, k: three for each group
  std::int32_t* n = nullptr;
  std::int32_t* rows = nullptr;
  std::int32_t* k = nullptr;
};

// Enqueues one kernel that writes entries [first, first + count) of the arrays; count is at most
// kGroupsOfLaunch.
void describe_groups(cudaStream_t stream, const GroupRows& rows, int first, int count,
                     const GroupOperands& operands, const GroupArrays& arrays);

}  // namespace epsweep::cuda
