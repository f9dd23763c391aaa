// The safetensors format: 8 bytes of header length (little-endian), a JSON header {name: {dtype,
// shape, data_offsets}}, and the tensors one after the other without holes
// (github.com/huggingface/safetensors, "Format"). Little-endian hosts only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace epsweep {

enum class TensorDType { i64, i32, i16, i8, u8, f64, f32, f16, bf16 };
inline const std::vector<std::string> kTensorDTypeNames = {"I64", "I32", "I16", "I8",  "U8",
                                                           "F64", "F32", "F16", "BF16"};

// A tensor inside the bytes it was read from.
struct Tensor {
  std::string where;  // "file: tensor 'name'", for messages
  std::string name;
  TensorDType dtype = TensorDType::i64;
  std::vector<std::int64_t> shape;  // row-major; empty for a single value
  std::string_view bytes;           // as many as dtype and shape say

  std::size_t num_values() const;
};

// All tensors, by name; their bytes are those of `file`, which must outlive them. Every length is
// checked against the file's before anything is allocated by it. Throws ConfigError naming `where`
// and the tensor for anything the format does not allow.
std::vector<Tensor> read_safetensors(std::string_view file, const std::string& where);

// The values of an integer tensor. Throws ConfigError for a tensor of fractions.
std::vector<std::int64_t> tensor_integers(const Tensor& tensor);
// The values of any tensor. Throws ConfigError for NaN and infinities.
std::vector<double> tensor_numbers(const Tensor& tensor);

}  // namespace epsweep
