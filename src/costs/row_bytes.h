// What one copy of a token row weighs in the number formats that exchanges use.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace epsweep {

// Of one copy. Its routing metadata comes on top, see metadata_bytes().
struct RowBytes {
  std::string dtype;
  std::int64_t payload = 0;  // the values
  std::int64_t scale = 0;    // the scale factors of blocks of values

  std::int64_t total() const { return payload + scale; }
};

// For rows of io_dim values (expert_io_dim):
//   bf16   2 * H            fp32  4 * H
//   fp8    H, and an fp32 scale per 128 values (DeepEP's FP8 dispatch)
//   mxfp8  H, and one byte of scale per 32 values (OCP Microscaling formats)
//   nvfp4  H / 2, and one byte of scale per 16 values
// Parts of blocks have a scale of their own. epsweep itself exchanges bf16 and fp32; the others say
// what the same routing would cost.
std::vector<RowBytes> row_bytes_by_dtype(std::int64_t io_dim);

// An expert id (int32) and its router weight (fp32).
inline constexpr std::int64_t kMetadataBytes = 8;

// Which (id, weight) pairs travel with a copy: its own one where every assignment is a copy (letter
// A); all top_k where one copy serves several experts (B to E).
enum class CopyUnit { assignment, distinct };
std::int64_t metadata_bytes(CopyUnit unit, int top_k);

}  // namespace epsweep
