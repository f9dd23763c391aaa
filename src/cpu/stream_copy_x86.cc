#include <emmintrin.h>

#include "cpu/stream_copy.h"

namespace epsweep {

void stream_copy(const void* from, void* to, std::int64_t bytes) {
  const auto* source = static_cast<const __m128i*>(from);
  auto* target = static_cast<__m128i*>(to);
  constexpr auto kWord = static_cast<std::int64_t>(sizeof(__m128i));
  for (std::int64_t i = 0; i < bytes / kWord; ++i) {
    _mm_stream_si128(target + i, _mm_load_si128(source + i));
  }
  _mm_sfence();
}

}  // namespace epsweep
