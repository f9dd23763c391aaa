// The groups of a grouped matrix product, described in device memory: one for each expert with
// rows.
#pragma once

#include <cstdint>
#include <span>

#include "cuda/kernels/groups.h"
#include "device/buffer.h"
#include "device/grouped_gemm.h"

namespace epsweep::cuda {

struct Groups {
  int count = 0;     // experts with rows
  int launches = 0;  // of kernels that described them
  std::int64_t rows = 0;
};

class GroupTable {
 public:
  // Allocates room for all experts.
  explicit GroupTable(const GemmShape& shape);

  struct Operands {
    const void* x = nullptr;
    const void* w = nullptr;  // of the first expert; the others follow at n * k elements each
    void* y = nullptr;
  };
  // Throws RunError for 2^31 rows and more.
  void check(std::span<const std::int64_t> rows_per_expert) const;
  // Enqueues. In stream order with what reads the arrays, so that runs in flight do not disturb
  // each other.
  Groups describe(cudaStream_t stream, const Operands& operands,
                  std::span<const std::int64_t> rows_per_expert);

  // Device memory that stays where it is.
  const GroupArrays& arrays() const { return arrays_; }
  std::int64_t bytes() const { return memory_.bytes(); }

 private:
  GemmShape shape_;
  Buffer memory_;
  GroupArrays arrays_;
};

}  // namespace epsweep::cuda
