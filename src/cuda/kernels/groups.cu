#include "cuda/kernels/groups.h"
#include "cuda/launch.h"

namespace epsweep::cuda {
namespace {

// One thread a group.
__global__ void describe_groups_kernel(GroupRows rows, int first, int count, GroupOperands operands,
                                       GroupArrays arrays) {
  const int index = static_cast<int>(threadIdx.x);
  if (index >= count) return;
  const int group = first + index;
  const std::int64_t row = rows.begin[index];
  const std::int64_t row_k = operands.k * operands.element_bytes;
  const std::int64_t row_n = operands.n * operands.element_bytes;
  arrays.w[group] = static_cast<const char*>(operands.w) + rows.expert[index] * operands.n * row_k;
  arrays.x[group] = static_cast<const char*>(operands.x) + row * row_k;
  arrays.y[group] = static_cast<char*>(operands.y) + row * row_n;
  arrays.stride_k[group] = operands.k;
  arrays.stride_n[group] = operands.n;
  const std::int32_t shape[3] = {static_cast<std::int32_t>(operands.n),
                                 rows.begin[index + 1] - rows.begin[index],
                                 static_cast<std::int32_t>(operands.k)};
  arrays.n[group] = shape[0];
  arrays.rows[group] = shape[1];
  arrays.k[group] = shape[2];
  for (int i = 0; i < 3; ++i) arrays.shape[3 * group + i] = shape[i];
}

}  // namespace

void describe_groups(cudaStream_t stream, const GroupRows& rows, int first, int count,
                     const GroupOperands& operands, const GroupArrays& arrays) {
  launch(stream, Grid{dim3(count > 0 ? 1 : 0), dim3(kGroupsOfLaunch)}, describe_groups_kernel, rows,
         first, count, operands, arrays);
}

}  // namespace epsweep::cuda
