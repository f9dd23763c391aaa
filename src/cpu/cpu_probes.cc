#include "cpu/cpu_probes.h"

#include <algorithm>
#include <cstddef>

#include "base/error.h"
#include "base/host_probe.h"
#include "cpu/stream_copy.h"

namespace epsweep {
namespace {

constexpr std::int64_t kSmallestStream = std::int64_t{128} << 20;
// Long enough that handing it out costs nothing, short enough that threads end together.
constexpr std::int64_t kPartBytes = std::int64_t{2} << 20;

// The sum of the words, in an order the compiler may vectorise.
EPSWEEP_MULTIVERSION
std::uint64_t sum_words(const std::uint64_t* words, std::int64_t count) {
  std::uint64_t sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += words[i];
  return sum;
}

// function(begin, count) for parts of [0, bytes).
template <typename Function>
void for_each_part(ThreadPool& pool, std::int64_t bytes, const Function& function) {
  pool.run((bytes + kPartBytes - 1) / kPartBytes, [&](std::int64_t part, int) {
    const std::int64_t begin = part * kPartBytes;
    function(begin, std::min(kPartBytes, bytes - begin));
  });
}

}  // namespace

ThreadPool& CpuProbes::pool() {
  if (!pool_) pool_.emplace(num_threads_);
  return *pool_;
}

std::int64_t CpuProbes::stream_bytes() const {
  return std::max(kSmallestStream, 2 * last_level_cache_bytes());
}

void CpuProbes::read(Lane&, const Buffer& from, const BufferPart& part) {
  EPS_EXPECT(holds(from, part), "no such range to read");
  const auto* data = static_cast<const std::byte*>(from.data()) + part.begin;
  for_each_part(pool(), part.bytes, [&](std::int64_t begin, std::int64_t count) {
    const auto* words = reinterpret_cast<const std::uint64_t*>(data + begin);
    checksum_ += sum_words(words, count / 8);
  });
}

void CpuProbes::copy(Lane&, Buffer& buffer, const BufferPart& part, std::int64_t to) {
  EPS_EXPECT(holds(buffer, part) && holds(buffer, {to, part.bytes}), "no such range to copy");
  auto* data = static_cast<std::byte*>(buffer.data());
  for_each_part(pool(), part.bytes, [&](std::int64_t begin, std::int64_t count) {
    stream_copy(data + part.begin + begin, data + to + begin, count);
  });
}

}  // namespace epsweep
