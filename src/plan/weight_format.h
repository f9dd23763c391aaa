// How many bytes weights take in the formats models are published in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace epsweep {

// bytes = parameters * numerator / denominator. What the scales of blocks add is in it for 4-bit
// formats:
//   mxfp4, fp4  4 bits and an 8-bit scale for 32 weights (OCP MX; fp4 is taken to be the same)
//   nvfp4       4 bits and an 8-bit scale for 16 weights
//   int4        4 bits and a 16-bit scale for 32 weights (compressed-tensors pack-quantized)
// fp8 scales of 128x128 blocks are 4 bytes for 16,384 weights, 0.02 %, and are left out.
struct WeightFormat {
  std::string name;
  std::int64_t numerator = 1, denominator = 1;
  // 4-bit formats are published for experts alone; everything else stays bf16.
  enum class Covers { all_weights, experts_only } covers = Covers::all_weights;
};

const std::vector<WeightFormat>& weight_formats();
std::vector<std::string> weight_format_names();
// Absent for a name that is not among them.
std::optional<WeightFormat> find_weight_format(const std::string& name);

// Rounded up; does not overflow for any model that fits int64 in fp32.
std::int64_t bytes_of_weights(std::int64_t num_params, const WeightFormat& format);

}  // namespace epsweep
