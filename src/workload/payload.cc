#include "workload/payload.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

#include "base/error.h"

namespace epsweep {
namespace {

// One random word holds eight values, the one with the lowest index in its lowest byte.
constexpr std::int64_t kPerWord = 8;
static_assert(std::endian::native == std::endian::little, "blocks are read in memory order");

float to_value(std::int8_t byte, float unit) {
  return static_cast<float>(2 * byte + 1) * unit;
}

void store(float value, float& out) {
  out = value;
}
// Eight significant bits: cutting the lower half of the word loses nothing.
void store(float value, std::uint16_t& out) {
  out = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
}

// Any start and length, word by word.
template <typename T>
void fill_plainly(const RandomStream& stream, std::int64_t index, float unit, std::span<T> out) {
  while (!out.empty()) {
    const std::int64_t lane = index % kPerWord;
    const std::uint64_t word = stream.bits(static_cast<std::uint64_t>(index / kPerWord));
    const auto count = std::min(static_cast<std::size_t>(kPerWord - lane), out.size());
    for (std::size_t i = 0; i < count; ++i) {
      const auto shift = 8 * (static_cast<std::size_t>(lane) + i);
      store(to_value(static_cast<std::int8_t>(word >> shift), unit), out[i]);
    }
    index += static_cast<std::int64_t>(count);
    out = out.subspan(count);
  }
}

// Whole words in blocks of fixed size, which compilers turn into vector code.
template <typename T>
void fill(const RandomStream& stream, std::int64_t index, float unit, std::span<T> out) {
  constexpr std::size_t kWords = 8, kBlock = kWords * kPerWord;
  const auto head = std::min(static_cast<std::size_t>(-index & (kPerWord - 1)), out.size());
  fill_plainly(stream, index, unit, out.first(head));
  index += static_cast<std::int64_t>(head);
  out = out.subspan(head);
  while (out.size() >= kBlock) {
    std::array<std::uint64_t, kWords> words;
    for (std::size_t w = 0; w < kWords; ++w) {
      words[w] = stream.bits(static_cast<std::uint64_t>(index / kPerWord) + w);
    }
    const auto bytes = std::bit_cast<std::array<std::int8_t, kBlock>>(words);
    T* block = out.data();
    for (std::size_t i = 0; i < kBlock; ++i) store(to_value(bytes[i], unit), block[i]);
    index += static_cast<std::int64_t>(kBlock);
    out = out.subspan(kBlock);
  }
  fill_plainly(stream, index, unit, out);
}

}  // namespace

void PayloadMatrix::fill_row(std::int64_t row, std::span<float> out) const {
  fill(stream_, row * cols_, unit_, out);
}

void PayloadMatrix::fill_row(std::int64_t row, std::span<std::uint16_t> out) const {
  fill(stream_, row * cols_, unit_, out);
}

double weight_amplitude(std::int64_t num_inputs) {
  EPS_EXPECT(num_inputs >= 1, "a dot product without inputs");
  double amplitude = 1;
  while (amplitude * amplitude * static_cast<double>(num_inputs) > 3) amplitude /= 2;
  return amplitude;
}

PayloadMatrix token_matrix(std::uint64_t seed, std::int64_t hidden_dim) {
  return {RandomStream(seed, Stream::token), hidden_dim, 2.0};
}

PayloadMatrix gate_matrix(std::uint64_t seed, int layer, std::int64_t hidden_dim) {
  return {RandomStream(seed, Stream::gate_weight, static_cast<std::uint64_t>(layer)), hidden_dim,
          weight_amplitude(hidden_dim)};
}

PayloadMatrix selection_bias_matrix(std::uint64_t seed, int layer, int num_experts,
                                    double amplitude) {
  return {RandomStream(seed, Stream::selection_bias, static_cast<std::uint64_t>(layer)),
          num_experts, amplitude};
}

PayloadMatrix gate_up_matrix(std::uint64_t seed, int layer, int expert,
                             std::int64_t expert_io_dim) {
  return {RandomStream(seed, Stream::expert_gate_up, static_cast<std::uint64_t>(layer),
                       static_cast<std::uint64_t>(expert)),
          expert_io_dim, weight_amplitude(expert_io_dim)};
}

PayloadMatrix down_matrix(std::uint64_t seed, int layer, int expert, std::int64_t ffn_dim) {
  return {RandomStream(seed, Stream::expert_down, static_cast<std::uint64_t>(layer),
                       static_cast<std::uint64_t>(expert)),
          ffn_dim, weight_amplitude(ffn_dim)};
}

}  // namespace epsweep
