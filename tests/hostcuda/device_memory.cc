#include "hostcuda/device_memory.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <stdexcept>

#include <sys/mman.h>

// Present where the program is built with -fsanitize=address: reads beside an allocation show too.
extern "C" {
void __asan_poison_memory_region(const volatile void* data, std::size_t bytes)
    __attribute__((weak));
void __asan_unpoison_memory_region(const volatile void* data, std::size_t bytes)
    __attribute__((weak));
}

namespace hostcuda {
namespace {

constexpr std::size_t kPage = 4096, kAlignment = 256, kGuardPages = 16;
// Of larger allocations only this much at both ends is poisoned: writing 32 MiB of workspace for
// every product would take most of a test's time.
constexpr std::size_t kMostPoison = 64 << 10;
// Freed memory stays out of bounds until so many others were freed.
constexpr std::size_t kQuarantine = 512;
// A NaN in bf16 and fp32, and a negative row number.
constexpr std::uint16_t kGuard = 0xffc1;

struct Allocation {
  std::size_t bytes = 0;
  unsigned char* mapping = nullptr;
  std::size_t mapped = 0;
};

struct Memory {
  std::map<const unsigned char*, Allocation> device;
  std::map<const unsigned char*, std::size_t> pinned;
  std::deque<Allocation> quarantine;
  std::size_t used = 0;
  long long pinned_allocations = 0;
};

// Never destroyed: buffers of static lifetime are freed after everything else.
Memory& memory() {
  static Memory& instance = *new Memory;
  return instance;
}

std::size_t round_up(std::size_t bytes, std::size_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

unsigned char guard_byte(const unsigned char* at) {
  return static_cast<unsigned char>(reinterpret_cast<std::uintptr_t>(at) % 2 == 0 ? kGuard
                                                                                  : kGuard >> 8);
}

// Visits the bytes that share pages with the data but are not part of it.
template <typename Visit>
void for_each_guard(unsigned char* data, const Allocation& allocation, const Visit& visit) {
  const auto visit_range = [&](unsigned char* begin, unsigned char* end) {
    if (begin != end) visit(begin, end);
  };
  visit_range(allocation.mapping + kGuardPages * kPage, data);
  visit_range(data + allocation.bytes,
              allocation.mapping + allocation.mapped - kGuardPages * kPage);
}

void poison(unsigned char* data, std::size_t bytes) {
  const std::size_t part = std::min(bytes, kMostPoison);
  std::memset(data, 0xff, part);
  std::memset(data + bytes - part, 0xff, part);
}

template <typename Map, typename SizeOf>
bool inside(const Map& map, const void* at, std::size_t bytes, const SizeOf& size_of) {
  const auto* begin = static_cast<const unsigned char*>(at);
  const auto next = map.upper_bound(begin);
  if (next == map.begin()) return false;
  const auto& [data, value] = *std::prev(next);
  const auto offset = static_cast<std::size_t>(begin - data);
  return offset + bytes <= size_of(value);
}

}  // namespace

std::size_t device_bytes() {
  const char* mib = std::getenv("EPSWEEP_HOSTCUDA_MEMORY_MIB");
  return mib == nullptr ? std::size_t{8} << 30 : std::size_t(std::atoi(mib)) << 20;
}

void* allocate_device(std::size_t bytes) {
  if (memory().used + bytes > device_bytes()) return nullptr;
  Allocation made{.bytes = bytes};
  made.mapped = round_up(std::max<std::size_t>(bytes, 1), kPage) + 2 * kGuardPages * kPage;
  void* mapping = mmap(nullptr, made.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return nullptr;
  made.mapping = static_cast<unsigned char*>(mapping);
  unsigned char* first = made.mapping + kGuardPages * kPage;
  const std::size_t open = made.mapped - 2 * kGuardPages * kPage;
  if (mprotect(first, open, PROT_READ | PROT_WRITE) != 0) return nullptr;
  // At the end of its pages, so that reading on is reading where nothing is.
  unsigned char* data = first + open - round_up(std::max<std::size_t>(bytes, 1), kAlignment);
  poison(data, bytes);
  for_each_guard(data, made, [](unsigned char* begin, unsigned char* end) {
    for (unsigned char* at = begin; at != end; ++at) *at = guard_byte(at);
    if (__asan_poison_memory_region != nullptr) {
      __asan_poison_memory_region(begin, static_cast<std::size_t>(end - begin));
    }
  });
  memory().device[data] = made;
  memory().used += bytes;
  return data;
}

bool free_device(void* data) {
  const auto found = memory().device.find(static_cast<unsigned char*>(data));
  if (found == memory().device.end()) return false;
  const Allocation allocation = found->second;
  bool intact = true;
  for_each_guard(static_cast<unsigned char*>(data), allocation,
                 [&](unsigned char* begin, unsigned char* end) {
                   if (__asan_unpoison_memory_region != nullptr) {
                     __asan_unpoison_memory_region(begin, static_cast<std::size_t>(end - begin));
                   }
                   for (unsigned char* at = begin; at != end; ++at) {
                     intact = intact && *at == guard_byte(at);
                   }
                 });
  memory().used -= allocation.bytes;
  memory().device.erase(found);
  // Gone at once, but its addresses are not given out again soon.
  mmap(allocation.mapping, allocation.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
       -1, 0);
  memory().quarantine.push_back(allocation);
  if (memory().quarantine.size() > kQuarantine) {
    munmap(memory().quarantine.front().mapping, memory().quarantine.front().mapped);
    memory().quarantine.pop_front();
  }
  if (!intact) throw std::logic_error("device memory was written outside an allocation");
  return true;
}

bool on_device(const void* at, std::size_t bytes) {
  return inside(memory().device, at, bytes, [](const Allocation& a) { return a.bytes; });
}

std::size_t device_bytes_used() {
  return memory().used;
}

void* allocate_pinned(std::size_t bytes) {
  void* data = std::malloc(std::max<std::size_t>(bytes, 1));
  if (data == nullptr) return nullptr;
  std::memset(data, 0xff, std::min(bytes, kMostPoison));
  memory().pinned[static_cast<unsigned char*>(data)] = bytes;
  ++memory().pinned_allocations;
  return data;
}

void free_pinned(void* data) {
  const auto found = memory().pinned.find(static_cast<unsigned char*>(data));
  if (found == memory().pinned.end()) return;
  std::memset(data, 0xff, std::min(found->second, kMostPoison));
  memory().pinned.erase(found);
  std::free(data);
}

bool in_pinned(const void* at, std::size_t bytes) {
  return inside(memory().pinned, at, bytes, [](std::size_t size) { return size; });
}

long long page_locked_allocations() {
  return memory().pinned_allocations;
}

}  // namespace hostcuda
