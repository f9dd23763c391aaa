#include <algorithm>
#include <cstring>

#include <emmintrin.h>

#include "cpu/row_loops.h"
#include "cpu/row_streams.h"

namespace epsweep {
namespace {

constexpr std::int64_t kWord = sizeof(__m128i), kLine = 64;
// How far ahead of its use a line is asked for: the hardware does not look past a page.
constexpr std::int64_t kAheadBytes = 2048;

bool can_stream_to(const void* to) {
  return reinterpret_cast<std::uintptr_t>(to) % kWord == 0;
}

struct PutStreaming {
  template <std::size_t bytes>
  static void put(const void* line, void* to) {
    for (std::size_t i = 0; i < bytes; i += kWord) {
      const auto* from = reinterpret_cast<const __m128i*>(static_cast<const char*>(line) + i);
      _mm_stream_si128(reinterpret_cast<__m128i*>(static_cast<char*>(to) + i),
                       _mm_loadu_si128(from));
    }
  }
};

EPSWEEP_MULTIVERSION
void stream_sum(const RowSum<float>& sum, std::int64_t cols, float* out) {
  add_rows<PutStreaming>(sum, cols, out);
}

EPSWEEP_MULTIVERSION
void stream_sum(const RowSum<std::uint16_t>& sum, std::int64_t cols, float* out) {
  add_rows<PutStreaming>(sum, cols, out);
}

EPSWEEP_MULTIVERSION
void stream_swiglu(const BusyRow& gate, const BusyRow& up, std::int64_t cols, std::uint16_t* out) {
  swiglu<PutStreaming>(gate, up, cols, out);
}

}  // namespace

void stream_row(const void* from, const void* next, void* to, std::int64_t bytes) {
  const auto* source = static_cast<const char*>(from);
  const auto* then = static_cast<const char*>(next);
  auto* target = static_cast<char*>(to);
  const std::int64_t lines = can_stream_to(to) ? bytes / kLine * kLine : 0;
  const std::int64_t ahead = std::min(kAheadBytes, bytes);
  for (std::int64_t i = 0; i < lines; i += kLine) {
    const std::int64_t at = i + ahead;
    __builtin_prefetch(at < bytes ? source + at : then + (at - bytes));
    PutStreaming::put<kLine>(source + i, target + i);
  }
  std::memcpy(target + lines, source + lines, static_cast<std::size_t>(bytes - lines));
}

void stream_swiglu_row(const BusyRow& gate, const BusyRow& up, std::int64_t cols,
                       std::uint16_t* out) {
  if (!can_stream_to(out)) return swiglu_row(gate, up, cols, out);
  stream_swiglu(gate, up, cols, out);
}

void stream_sum_rows(const RowSum<float>& sum, std::int64_t cols, float* out) {
  if (!can_stream_to(out)) return sum_rows(sum, cols, out);
  stream_sum(sum, cols, out);
}

void stream_sum_rows(const RowSum<std::uint16_t>& sum, std::int64_t cols, float* out) {
  if (!can_stream_to(out)) return sum_rows(sum, cols, out);
  stream_sum(sum, cols, out);
}

void stream_fence() {
  _mm_sfence();
}

}  // namespace epsweep
