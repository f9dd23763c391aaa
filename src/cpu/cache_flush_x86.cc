#include <cstdint>

#include <cpuid.h>
#include <emmintrin.h>

#include "cpu/cache_flush.h"

namespace epsweep {
namespace {

constexpr std::uintptr_t kLine = 64;

bool has_clflushopt() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (ebx & (1U << 23)) != 0;
}

// Written as assembly so that the baseline compiler accepts it; run only where CPUID allows.
void flush_unordered(std::uintptr_t begin, std::uintptr_t end) {
  for (std::uintptr_t line = begin; line < end; line += kLine) {
    asm volatile("clflushopt (%0)" : : "r"(line) : "memory");
  }
}

// Every x86-64 has it; ordered, hence about ten times slower.
void flush_ordered(std::uintptr_t begin, std::uintptr_t end) {
  for (std::uintptr_t line = begin; line < end; line += kLine) {
    asm volatile("clflush (%0)" : : "r"(line) : "memory");
  }
}

}  // namespace

void flush_from_caches(const void* data, std::int64_t bytes) {
  static const bool unordered = has_clflushopt();
  if (bytes <= 0) return;
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t end = address + static_cast<std::uintptr_t>(bytes);
  // Earlier stores to the range must be visible before their lines are thrown out.
  _mm_mfence();
  if (unordered) {
    flush_unordered(address & ~(kLine - 1), end);
  } else {
    flush_ordered(address & ~(kLine - 1), end);
  }
  _mm_mfence();
}

}  // namespace epsweep
