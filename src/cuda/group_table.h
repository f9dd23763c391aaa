// The groups of a grouped matrix product, described in device memory: one for each expert with
// rows.
#pragma once

#include <cstdint>
#include <span>

#include "cuda/kernels/groups.h"
#include "device/buffer.h"
#include "device/grouped_gemm.h"

namespace epsweep::cuda {

class GroupTable {
 public:
  // Allocates room for all experts.
  explicit GroupTable(const GemmShape& shape);

  struct Operands {
    const void* x = nullptr;
    const void* w = nullptr;  // of the first expert; the others follow at n * k elements each
    void* y = nullptr;
  };
  // Enqueues; returns how many groups there are, which may be none. In stream order with what reads
  // the arrays, so that runs in flight do not disturb each other. Throws RunError for 2^31 rows and
  // more.
  int describe(cudaStream_t stream, const Operands& operands,
               std::span<const std::int64_t> rows_per_expert);

  // Device memory that stays where it is.
  const GroupArrays& arrays() const { return arrays_; }

 private:
  GemmShape shape_;
  Buffer memory_;
  GroupArrays arrays_;
};

}  // namespace epsweep::cuda
