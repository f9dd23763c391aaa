#include "plan/weight_format.h"

#include <algorithm>

namespace epsweep {

const std::vector<WeightFormat>& weight_formats() {
  using enum WeightFormat::Covers;
  static const std::vector<WeightFormat> formats = {
      {"fp32", 4, 1, all_weights},   {"bf16", 2, 1, all_weights},
      {"fp16", 2, 1, all_weights},   {"fp8", 1, 1, all_weights},
      {"int8", 1, 1, all_weights},   {"mxfp4", 17, 32, experts_only},
      {"fp4", 17, 32, experts_only}, {"nvfp4", 9, 16, experts_only},
      {"int4", 9, 16, experts_only}};
  return formats;
}

std::vector<std::string> weight_format_names() {
  std::vector<std::string> names;
  for (const WeightFormat& format : weight_formats()) names.push_back(format.name);
  return names;
}

std::optional<WeightFormat> find_weight_format(const std::string& name) {
  const auto found = std::ranges::find(weight_formats(), name, &WeightFormat::name);
  if (found == weight_formats().end()) return std::nullopt;
  return *found;
}

std::int64_t bytes_of_weights(std::int64_t num_params, const WeightFormat& format) {
  const std::int64_t whole = num_params / format.denominator;
  const std::int64_t rest = num_params % format.denominator;
  return whole * format.numerator +
         (rest * format.numerator + format.denominator - 1) / format.denominator;
}

}  // namespace epsweep
