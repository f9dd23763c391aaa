#include "plan/model_import_dtype.h"

#include <algorithm>
#include <cctype>
#include <map>

namespace epsweep {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// compressed-tensors states the bits per group of layers; "" unless all groups agree.
std::string dtype_of_groups(const Json& groups) {
  std::string common;
  for (const auto& [name, group] : groups.items()) {
    const auto weights = group.is_object() ? group.find("weights") : group.end();
    if (!group.is_object() || weights == group.end() || !weights->is_object()) return "";
    const auto bits = weights->find("num_bits");
    const auto type = weights->find("type");
    if (bits == weights->end() || !bits->is_number_integer() || type == weights->end() ||
        !type->is_string()) {
      return "";
    }
    const std::string base = type->get<std::string>() == "float" ? "fp" : "int";
    const std::string dtype = base + std::to_string(bits->get<std::int64_t>());
    if (!common.empty() && common != dtype) return "";
    common = dtype;
  }
  return common;
}

// A format that leaves the bits open stays as it is.
std::string dtype_of_format(const std::string& format) {
  static const std::map<std::string, std::string> dtypes = {
      {"mxfp4-pack-quantized", "mxfp4"},
      {"nvfp4-pack-quantized", "nvfp4"},
      {"float-quantized", "fp8"},
      {"int-quantized", "int8"},
  };
  const auto found = dtypes.find(format);
  return found == dtypes.end() ? format : found->second;
}

std::optional<Fact<std::string>> quantized_dtype(const HfConfig& config) {
  auto method = config.word({"quantization_config.quant_method"});
  if (!method) return std::nullopt;
  if (method->value == "compressed-tensors") {
    auto format = config.word({"quantization_config.format"});
    // MXFP4 and NVFP4 are both four-bit floats; only the format tells them apart.
    if (format && dtype_of_format(format->value) != format->value) {
      return Fact<std::string>{format->key, dtype_of_format(format->value)};
    }
    const auto groups = config.map("quantization_config.config_groups");
    const std::string dtype = groups ? dtype_of_groups(groups->value) : "";
    if (!dtype.empty()) return Fact<std::string>{groups->key, dtype};
    if (format) return format;
  }
  if (method->value == "modelopt") {
    const auto algorithm = config.word({"quantization_config.quant_algo"});
    if (algorithm) return Fact<std::string>{algorithm->key, lower(algorithm->value)};
  }
  return method;
}

}  // namespace

std::optional<Fact<std::string>> published_dtype(const HfConfig& config) {
  // The experts' own type comes first: the rest of such a model is stored more finely.
  if (auto experts = config.word({"expert_dtype"})) return experts;
  if (auto quantized = quantized_dtype(config)) return quantized;
  auto plain = config.word({"dtype", "torch_dtype"});
  static const std::map<std::string, std::string> short_names = {
      {"bfloat16", "bf16"}, {"float16", "fp16"}, {"float32", "fp32"}};
  if (plain && short_names.count(plain->value) != 0) plain->value = short_names.at(plain->value);
  return plain;
}

}  // namespace epsweep
