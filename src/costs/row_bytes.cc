#include "costs/row_bytes.h"

#include "base/error.h"

namespace epsweep {
namespace {

std::int64_t num_blocks(std::int64_t values, std::int64_t block) {
  return (values + block - 1) / block;
}

}  // namespace

std::vector<RowBytes> row_bytes_by_dtype(std::int64_t io_dim) {
  EPS_EXPECT(io_dim >= 0, "rows of a negative length");
  return {{"bf16", 2 * io_dim, 0},
          {"fp32", 4 * io_dim, 0},
          {"fp8", io_dim, 4 * num_blocks(io_dim, 128)},
          {"mxfp8", io_dim, num_blocks(io_dim, 32)},
          {"nvfp4", num_blocks(io_dim, 2), num_blocks(io_dim, 16)}};
}

std::int64_t metadata_bytes(CopyUnit unit, int top_k) {
  return unit == CopyUnit::assignment ? kMetadataBytes : top_k * kMetadataBytes;
}

}  // namespace epsweep
