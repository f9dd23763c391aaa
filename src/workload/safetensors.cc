#include "workload/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace epsweep {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are little-endian");

constexpr std::size_t kLengthBytes = 8;
// What the format's own library refuses beyond.
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;
constexpr std::size_t kMaxDims = 8;
constexpr std::array<std::size_t, 9> kValueBytes = {8, 4, 2, 1, 1, 8, 4, 2, 2};

std::size_t bytes_of(TensorDType dtype) {
  return kValueBytes[static_cast<std::size_t>(dtype)];
}

// One entry of the header, on its way to a Tensor.
struct HeaderEntry {
  std::string where;
  const SortedJson& json;

  [[noreturn]] void refuse(const std::string& what) const {
    throw ConfigError(where + ": " + what);
  }
  const SortedJson& require(const char* key) const {
    const auto found = json.find(key);
    if (found == json.end()) refuse(fmt::format("has no {}", key));
    return *found;
  }
};

TensorDType read_dtype(const HeaderEntry& entry) {
  const SortedJson& value = entry.require("dtype");
  const std::string name = value.is_string() ? value.get<std::string>() : "";
  const auto found = std::ranges::find(kTensorDTypeNames, name);
  if (found == kTensorDTypeNames.end()) {
    entry.refuse(
        fmt::format("dtype '{}' is not one of {}", name.substr(0, 20), join(kTensorDTypeNames)));
  }
  return static_cast<TensorDType>(found - kTensorDTypeNames.begin());
}

// Whole numbers from 0 to `max`; what is larger cannot be in the file.
std::vector<std::int64_t> read_sizes(const HeaderEntry& entry, const char* key, std::size_t max) {
  const SortedJson& list = entry.require(key);
  if (!list.is_array() || list.size() > kMaxDims) {
    entry.refuse(fmt::format("{} is not a list of at most {} sizes", key, kMaxDims));
  }
  std::vector<std::int64_t> sizes;
  for (const SortedJson& value : list) {
    if (!value.is_number_unsigned()) {
      entry.refuse(fmt::format("{} holds something else than whole numbers from 0", key));
    }
    const auto size = value.get<std::uint64_t>();
    if (size > max) {
      entry.refuse(fmt::format("{} holds {}, the file has {} bytes of tensors", key, size, max));
    }
    sizes.push_back(static_cast<std::int64_t>(size));
  }
  return sizes;
}

// Bytes that dtype and shape ask for; stops multiplying above `max`, so it cannot overflow.
std::size_t shape_bytes(const HeaderEntry& entry, const Tensor& tensor, std::size_t max) {
  if (std::ranges::find(tensor.shape, 0) != tensor.shape.end()) return 0;
  std::size_t bytes = bytes_of(tensor.dtype);
  for (const std::int64_t size : tensor.shape) {
    const auto factor = static_cast<std::size_t>(size);
    if (bytes > max / factor) {
      entry.refuse(fmt::format("shape [{}] is larger than the {} bytes of tensors in the file",
                               fmt::join(tensor.shape, ","), max));
    }
    bytes *= factor;
  }
  return bytes;
}

Tensor read_entry(const HeaderEntry& entry, const std::string& name, std::string_view data) {
  if (!entry.json.is_object()) entry.refuse("is not described by an object");
  Tensor tensor{.where = entry.where, .name = name};
  tensor.dtype = read_dtype(entry);
  tensor.shape = read_sizes(entry, "shape", data.size());
  const std::vector<std::int64_t> offsets = read_sizes(entry, "data_offsets", data.size());
  if (offsets.size() != 2 || offsets[0] > offsets[1]) {
    entry.refuse(fmt::format("data_offsets [{}] are not a begin and an end at or behind it",
                             fmt::join(offsets, ",")));
  }
  const auto begin = static_cast<std::size_t>(offsets[0]);
  const auto end = static_cast<std::size_t>(offsets[1]);
  if (begin % bytes_of(tensor.dtype) != 0) {
    entry.refuse(fmt::format("begins at byte {}, which values of {} bytes are not aligned to",
                             begin, bytes_of(tensor.dtype)));
  }
  const std::size_t needed = shape_bytes(entry, tensor, data.size());
  if (needed != end - begin) {
    entry.refuse(fmt::format(
        "shape [{}] of {} needs {} bytes, data_offsets have {}", fmt::join(tensor.shape, ","),
        kTensorDTypeNames[static_cast<std::size_t>(tensor.dtype)], needed, end - begin));
  }
  tensor.bytes = data.substr(begin, end - begin);
  return tensor;
}

// Tensors must fill the data without overlaps and holes, as the format demands.
void expect_gapless(const std::vector<Tensor>& tensors, std::string_view data,
                    const std::string& where) {
  std::vector<const Tensor*> by_place;
  for (const Tensor& tensor : tensors) by_place.push_back(&tensor);
  const auto begin_of = [data](const Tensor* tensor) {
    return static_cast<std::size_t>(tensor->bytes.data() - data.data());
  };
  std::ranges::sort(by_place, [&](const Tensor* a, const Tensor* b) {
    return begin_of(a) != begin_of(b) ? begin_of(a) < begin_of(b)
                                      : a->bytes.size() < b->bytes.size();
  });
  std::size_t end = 0;
  for (const Tensor* tensor : by_place) {
    if (begin_of(tensor) != end) {
      throw ConfigError(fmt::format("{}: begins at byte {} where {} ends at {}", tensor->where,
                                    begin_of(tensor), end == 0 ? "nothing" : "the tensor before it",
                                    end));
    }
    end += tensor->bytes.size();
  }
  if (end != data.size()) {
    throw ConfigError(fmt::format("{}: {} bytes of tensors, {} of them belong to none", where,
                                  data.size(), data.size() - end));
  }
}

std::size_t header_size(std::string_view file, const std::string& where) {
  if (file.size() < kLengthBytes) {
    throw ConfigError(fmt::format("{}: {} bytes, too short for safetensors", where, file.size()));
  }
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), kLengthBytes);
  if (length > kMaxHeaderBytes || length > file.size() - kLengthBytes) {
    throw ConfigError(
        fmt::format("{}: not safetensors, or cut off: a header of {} bytes in a file of {}", where,
                    length, file.size()));
  }
  return static_cast<std::size_t>(length);
}

template <typename T>
T value_at(const Tensor& tensor, std::size_t index) {
  T value;
  std::memcpy(&value, tensor.bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

double from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// IEEE 754 binary16.
double from_f16(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f, fraction = bits & 0x3ff;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 0x1f) return fraction == 0 ? sign * HUGE_VAL : std::nan("");
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(fraction + 1024, exponent - 25);
}

double number_at(const Tensor& tensor, std::size_t i) {
  switch (tensor.dtype) {
    case TensorDType::i64:
      return static_cast<double>(value_at<std::int64_t>(tensor, i));
    case TensorDType::i32:
      return value_at<std::int32_t>(tensor, i);
    case TensorDType::i16:
      return value_at<std::int16_t>(tensor, i);
    case TensorDType::i8:
      return value_at<std::int8_t>(tensor, i);
    case TensorDType::u8:
      return value_at<std::uint8_t>(tensor, i);
    case TensorDType::f64:
      return value_at<double>(tensor, i);
    case TensorDType::f32:
      return value_at<float>(tensor, i);
    case TensorDType::f16:
      return from_f16(value_at<std::uint16_t>(tensor, i));
    case TensorDType::bf16:
      return from_bf16(value_at<std::uint16_t>(tensor, i));
  }
  throw RunError("a tensor of no dtype");
}

}  // namespace

std::size_t Tensor::num_values() const {
  return bytes.size() / bytes_of(dtype);
}

std::vector<Tensor> read_safetensors(std::string_view file, const std::string& where) {
  const std::size_t length = header_size(file, where);
  const std::string_view header = file.substr(kLengthBytes, length);
  const std::string_view data = file.substr(kLengthBytes + length);
  const SortedJson root = parse_sorted_json(header, where + ": header");
  if (!root.is_object()) throw ConfigError(where + ": the header is not a JSON object");
  std::vector<Tensor> tensors;
  for (const auto& [name, json] : root.items()) {
    if (name == "__metadata__") continue;  // free text
    const std::string shown = name.size() > 60 ? name.substr(0, 60) + "..." : name;
    tensors.push_back(read_entry({fmt::format("{}: tensor '{}'", where, shown), json}, name, data));
  }
  expect_gapless(tensors, data, where);
  return tensors;
}

std::vector<std::int64_t> tensor_integers(const Tensor& tensor) {
  if (tensor.dtype >= TensorDType::f64) {
    throw ConfigError(fmt::format("{}: holds {}, expected whole numbers", tensor.where,
                                  kTensorDTypeNames[static_cast<std::size_t>(tensor.dtype)]));
  }
  std::vector<std::int64_t> values(tensor.num_values());
  for (std::size_t i = 0; i < values.size(); ++i) {
    // Through double only where that is exact.
    values[i] = tensor.dtype == TensorDType::i64 ? value_at<std::int64_t>(tensor, i)
                                                 : static_cast<std::int64_t>(number_at(tensor, i));
  }
  return values;
}

std::vector<double> tensor_numbers(const Tensor& tensor) {
  std::vector<double> values(tensor.num_values());
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = number_at(tensor, i);
    if (!std::isfinite(values[i])) {
      throw ConfigError(fmt::format("{}: value {} is {}", tensor.where, i, values[i]));
    }
  }
  return values;
}

}  // namespace epsweep
