#include "report/timing_table.h"

#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>
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

std::size_t num_values(int num_ranks, int num_iterations, int num_layers) {
  EPS_EXPECT(num_ranks >= 1 && num_iterations >= 1 && num_layers >= 1,
             "timing table without cells");
  return static_cast<std::size_t>(num_ranks) * static_cast<std::size_t>(num_iterations) *
         static_cast<std::size_t>(num_layers) * kNumStages * kNumMeasures;
}

std::string npy_header(const TimingTable& table) {
  std::string dict = fmt::format(
      "{{'descr': '<f8', 'fortran_order': False, 'shape': ({}, {}, {}, {}, {}), }}",
      table.num_ranks(), table.num_iterations(), table.num_layers(), kNumStages, kNumMeasures);
  const std::size_t unpadded = kPrefixBytes + dict.size() + 1;
  dict.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  dict += '\n';
  std::string header(kMagic);
  header += static_cast<char>(dict.size() & 0xff);
  header += static_cast<char>(dict.size() >> 8);
  return header + dict;
}

// The numbers between "'shape': (" and ")"; false if it is not five positive ints.
bool parse_shape(std::string_view dict, std::array<int, 5>& shape) {
  constexpr std::string_view kKey = "'shape': (";
  const std::size_t found = dict.find(kKey);
  if (found == std::string_view::npos) return false;
  const char* at = dict.data() + found + kKey.size();
  const char* const end = dict.data() + dict.size();
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    while (axis > 0 && at < end && (*at == ',' || *at == ' ')) ++at;
    const std::from_chars_result result = std::from_chars(at, end, shape[axis]);
    if (result.ec != std::errc{} || shape[axis] < 1) return false;
    at = result.ptr;
  }
  return at < end && *at == ')';
}

[[noreturn]] void throw_unreadable(const std::string& path, const std::string& reason) {
  throw RunError(fmt::format("{}: not a timing table: {}", path, reason));
}

}  // namespace

TimingTable::TimingTable(int num_ranks, int num_iterations, int num_layers)
    : TimingTable(num_ranks, num_iterations, num_layers,
                  std::vector<double>(epsweep::num_values(num_ranks, num_iterations, num_layers))) {
}

TimingTable::TimingTable(int num_ranks, int num_iterations, int num_layers,
                         std::vector<double> values)
    : num_ranks_(num_ranks),
      num_iterations_(num_iterations),
      num_layers_(num_layers),
      values_(std::move(values)) {
  EPS_EXPECT(values_.size() == epsweep::num_values(num_ranks, num_iterations, num_layers),
             "gathered times do not fit the timing table");
}

std::size_t TimingTable::index(int rank, int iteration, int layer, Stage stage,
                               Measure measure) const {
  EPS_EXPECT(rank >= 0 && rank < num_ranks_ && iteration >= 0 && iteration < num_iterations_ &&
                 layer >= 0 && layer < num_layers_,
             "cell outside the timing table");
  const auto row = (static_cast<std::size_t>(rank) * static_cast<std::size_t>(num_iterations_) +
                    static_cast<std::size_t>(iteration)) *
                       static_cast<std::size_t>(num_layers_) +
                   static_cast<std::size_t>(layer);
  return (row * kNumStages + static_cast<std::size_t>(stage)) * kNumMeasures +
         static_cast<std::size_t>(measure);
}

double& TimingTable::at(int rank, int iteration, int layer, Stage stage, Measure measure) {
  return values_[index(rank, iteration, layer, stage, measure)];
}

double TimingTable::at(int rank, int iteration, int layer, Stage stage, Measure measure) const {
  return values_[index(rank, iteration, layer, stage, measure)];
}

double TimingTable::wall_s(int rank, int iteration, int layer, Stage stage) const {
  const std::size_t begin = index(rank, iteration, layer, stage, Measure::begin_s);
  return values_[begin + static_cast<std::size_t>(Measure::end_s)] - values_[begin];
}

double TimingTable::iteration_wall_s(int rank, int iteration) const {
  return at(rank, iteration, num_layers_ - 1, Stage::unpermute, Measure::end_s) -
         at(rank, iteration, 0, Stage::router, Measure::begin_s);
}

void write_npy(const TimingTable& table, const std::string& path) {
  const std::string header = npy_header(table);
  const std::span<const double> values = table.values();
  const std::array<std::string_view, 2> parts = {
      header, {reinterpret_cast<const char*>(values.data()), values.size_bytes()}};
  write_file_atomically(path, parts);
}

TimingTable read_npy(const std::string& path) {
  std::string bytes;
  try {
    bytes = read_text_file(path);
  } catch (const ConfigError& error) {
    throw RunError(error.what());
  }
  const std::string_view view(bytes);
  if (view.size() < kPrefixBytes || view.substr(0, kMagic.size()) != kMagic) {
    throw_unreadable(path, "no .npy 1.0 header");
  }
  const std::size_t dict_bytes =
      static_cast<std::size_t>(static_cast<unsigned char>(view[8])) +
      (static_cast<std::size_t>(static_cast<unsigned char>(view[9])) << 8);
  if (view.size() < kPrefixBytes + dict_bytes) throw_unreadable(path, "header is cut off");
  const std::string_view dict = view.substr(kPrefixBytes, dict_bytes);
  std::array<int, 5> shape = {};
  if (dict.find("'descr': '<f8'") == std::string_view::npos ||
      dict.find("'fortran_order': False") == std::string_view::npos || !parse_shape(dict, shape) ||
      shape[3] != kNumStages || shape[4] != kNumMeasures) {
    throw_unreadable(path, fmt::format("unexpected header {}", dict.substr(0, 200)));
  }
  const std::string_view data = view.substr(kPrefixBytes + dict_bytes);
  // Compared in doubles: the product of five ints from a damaged header may not fit 64 bits.
  double expected_bytes = sizeof(double);
  for (const int axis : shape) expected_bytes *= axis;
  if (static_cast<double>(data.size()) != expected_bytes) {
    throw_unreadable(path, fmt::format("{} bytes of data, the header promises {:.0f}", data.size(),
                                       expected_bytes));
  }
  std::vector<double> values(data.size() / sizeof(double));
  std::memcpy(values.data(), data.data(), data.size());
  return TimingTable(shape[0], shape[1], shape[2], std::move(values));
}

}  // namespace epsweep
