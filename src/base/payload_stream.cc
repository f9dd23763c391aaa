#include "base/payload_stream.h"

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
void fill_plainly(const PayloadStream& stream, std::int64_t index, std::span<T> out) {
  while (!out.empty()) {
    const std::int64_t lane = index % kPerWord;
    const std::uint64_t word = stream.words.bits(static_cast<std::uint64_t>(index / kPerWord));
    const auto count = std::min(static_cast<std::size_t>(kPerWord - lane), out.size());
    for (std::size_t i = 0; i < count; ++i) {
      const auto shift = 8 * (static_cast<std::size_t>(lane) + i);
      store(to_value(static_cast<std::int8_t>(word >> shift), stream.unit), out[i]);
    }
    index += static_cast<std::int64_t>(count);
    out = out.subspan(count);
  }
}

// Whole words in blocks of fixed size, which compilers turn into vector code.
template <typename T>
void fill(const PayloadStream& stream, std::int64_t index, std::span<T> out) {
  constexpr std::size_t kWords = 8, kBlock = kWords * kPerWord;
  const auto head = std::min(static_cast<std::size_t>(-index & (kPerWord - 1)), out.size());
  fill_plainly(stream, index, out.first(head));
  index += static_cast<std::int64_t>(head);
  out = out.subspan(head);
  while (out.size() >= kBlock) {
    std::array<std::uint64_t, kWords> words;
    for (std::size_t w = 0; w < kWords; ++w) {
      words[w] = stream.words.bits(static_cast<std::uint64_t>(index / kPerWord) + w);
    }
    const auto bytes = std::bit_cast<std::array<std::int8_t, kBlock>>(words);
    T* block = out.data();
    for (std::size_t i = 0; i < kBlock; ++i) store(to_value(bytes[i], stream.unit), block[i]);
    index += static_cast<std::int64_t>(kBlock);
    out = out.subspan(kBlock);
  }
  fill_plainly(stream, index, out);
}

}  // namespace

void fill_payload(const PayloadStream& stream, std::int64_t begin, std::span<float> out) {
  fill(stream, begin, out);
}

void fill_payload(const PayloadStream& stream, std::int64_t begin, std::span<std::uint16_t> out) {
  fill(stream, begin, out);
}

void fill_payload(const PayloadStream& stream, std::int64_t begin, std::int64_t count, DType dtype,
                  void* out) {
  EPS_EXPECT(!is_fp8(dtype), "payload values of fp8 need a scale");
  const auto size = static_cast<std::size_t>(count);
  if (dtype == DType::bf16) {
    fill(stream, begin, std::span(static_cast<std::uint16_t*>(out), size));
  } else {
    fill(stream, begin, std::span(static_cast<float*>(out), size));
  }
}

}  // namespace epsweep
