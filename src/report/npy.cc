#include "report/npy.h"

#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "report/file_output.h"

namespace epsweep {
namespace {

static_assert(std::endian::native == std::endian::little, ".npy files are written as '<f8'");

constexpr std::string_view kMagic{"\x93NUMPY\x01\x00", 8};
constexpr std::size_t kPrefixBytes = 10;  // magic, version, 16-bit header length
constexpr std::size_t kAlignment = 64;    // of the data, as the format asks

std::string npy_header(std::span<const int> shape) {
  std::vector<std::string> axes;
  for (const int axis : shape) axes.push_back(std::to_string(axis));
  std::string dict =
      fmt::format("{{'descr': '<f8', 'fortran_order': False, 'shape': ({}), }}", join(axes, ", "));
  const std::size_t unpadded = kPrefixBytes + dict.size() + 1;
  dict.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  dict += '\n';
  std::string header(kMagic);
  header += static_cast<char>(dict.size() & 0xff);
  header += static_cast<char>(dict.size() >> 8);
  return header + dict;
}

// The numbers between "'shape': (" and ")"; empty if they are not that many positive ints.
std::vector<int> parse_shape(std::string_view dict, std::size_t num_axes) {
  constexpr std::string_view kKey = "'shape': (";
  const std::size_t found = dict.find(kKey);
  if (found == std::string_view::npos) return {};
  const char* at = dict.data() + found + kKey.size();
  const char* const end = dict.data() + dict.size();
  std::vector<int> shape(num_axes);
  for (std::size_t axis = 0; axis < num_axes; ++axis) {
    while (axis > 0 && at < end && (*at == ',' || *at == ' ')) ++at;
    const std::from_chars_result result = std::from_chars(at, end, shape[axis]);
    if (result.ec != std::errc{} || shape[axis] < 1) return {};
    at = result.ptr;
  }
  return at < end && *at == ')' ? shape : std::vector<int>{};
}

std::string read_bytes(const std::string& path) {
  try {
    return read_text_file(path);
  } catch (const ConfigError& error) {
    throw RunError(error.what());
  }
}

}  // namespace

void write_npy_array(const std::string& path, std::span<const int> shape,
                     std::span<const double> values) {
  const std::string header = npy_header(shape);
  const std::array<std::string_view, 2> parts = {
      header, {reinterpret_cast<const char*>(values.data()), values.size_bytes()}};
  write_file_atomically(path, parts);
}

NpyArray read_npy_array(const std::string& path, std::size_t num_axes, const std::string& what) {
  const auto refuse = [&](const std::string& reason) {
    throw RunError(fmt::format("{}: not a {}: {}", path, what, reason));
  };
  const std::string bytes = read_bytes(path);
  const std::string_view view(bytes);
  if (view.size() < kPrefixBytes || view.substr(0, kMagic.size()) != kMagic) {
    refuse("no .npy 1.0 header");
  }
  const std::size_t dict_bytes =
      static_cast<std::size_t>(static_cast<unsigned char>(view[8])) +
      (static_cast<std::size_t>(static_cast<unsigned char>(view[9])) << 8);
  if (view.size() < kPrefixBytes + dict_bytes) refuse("header is cut off");
  const std::string_view dict = view.substr(kPrefixBytes, dict_bytes);
  NpyArray array{.shape = parse_shape(dict, num_axes), .values = {}};
  if (dict.find("'descr': '<f8'") == std::string_view::npos ||
      dict.find("'fortran_order': False") == std::string_view::npos || array.shape.empty()) {
    refuse(fmt::format("unexpected header {}", dict.substr(0, 200)));
  }
  const std::string_view data = view.substr(kPrefixBytes + dict_bytes);
  // Compared in doubles: the product of ints from a damaged header may not fit 64 bits.
  double expected_bytes = sizeof(double);
  for (const int axis : array.shape) expected_bytes *= axis;
  if (static_cast<double>(data.size()) != expected_bytes) {
    refuse(
        fmt::format("{} bytes of data, the header promises {:.0f}", data.size(), expected_bytes));
  }
  array.values.resize(data.size() / sizeof(double));
  std::memcpy(array.values.data(), data.data(), data.size());
  return array;
}

}  // namespace epsweep
