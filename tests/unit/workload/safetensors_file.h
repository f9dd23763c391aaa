// Writes safetensors for tests, well-formed or with any header.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace epsweep {

inline std::string safetensors_of(const std::string& header, const std::string& data) {
  std::string file(8, '\0');
  const std::uint64_t length = header.size();
  std::memcpy(file.data(), &length, sizeof(length));
  return file + header + data;
}

template <typename T>
std::string raw_bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// Tensors are added in the order of the calls.
class SafetensorsFile {
 public:
  template <typename T>
  SafetensorsFile& add(const std::string& name, const std::string& dtype,
                       const std::vector<std::int64_t>& shape, const std::vector<T>& values) {
    const std::string bytes = raw_bytes(values);
    entries_.push_back(fmt::format(R"("{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                                   name, dtype, fmt::join(shape, ","), data_.size(),
                                   data_.size() + bytes.size()));
    data_ += bytes;
    return *this;
  }
  std::string bytes() const {
    return safetensors_of(fmt::format("{{{}}}", fmt::join(entries_, ",")), data_);
  }

 private:
  std::vector<std::string> entries_;
  std::string data_;
};

}  // namespace epsweep
