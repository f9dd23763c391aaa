#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/host_probe.h"
#include "cpu/cache_flush.h"

namespace epsweep {
namespace {

constexpr std::int64_t kUnknownCacheBytes = std::int64_t{64} << 20;
constexpr std::size_t kLine = 64;

std::vector<unsigned char>& eviction_buffer() {
  static std::vector<unsigned char> buffer(
      static_cast<std::size_t>(2 * std::max(last_level_cache_bytes(), kUnknownCacheBytes)));
  return buffer;
}

}  // namespace

// No portable flush instruction: what is wanted is pushed out by writing twice the last level
// cache, whatever the range.
void flush_from_caches(const void*, std::int64_t bytes) {
  if (bytes <= 0) return;
  std::vector<unsigned char>& buffer = eviction_buffer();
  volatile unsigned char* const lines = buffer.data();
  for (std::size_t i = 0; i < buffer.size(); i += kLine) {
    lines[i] = static_cast<unsigned char>(lines[i] + 1);
  }
}

}  // namespace epsweep
