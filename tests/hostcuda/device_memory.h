// Device memory between pages that nobody may touch: a kernel that leaves its buffers ends the
// program. A test double.
#pragma once

#include <cstddef>

namespace hostcuda {

// Of every device: 8 GiB, or EPSWEEP_HOSTCUDA_MEMORY_MIB.
std::size_t device_bytes();

// Aligned to 256 bytes, poisoned with 0xff (large ones at both ends only). Null where there is no
// more.
void* allocate_device(std::size_t bytes);
// False for what is not allocated. Throws std::logic_error where the bytes beside it were written.
bool free_device(void* data);
// Whether [at, at + bytes) lies in one allocation.
bool on_device(const void* at, std::size_t bytes);
std::size_t device_bytes_used();

// Page-locked host memory, poisoned.
void* allocate_pinned(std::size_t bytes);
void free_pinned(void* data);
bool in_pinned(const void* at, std::size_t bytes);
// How often it was asked for: timed iterations must not.
long long page_locked_allocations();

}  // namespace hostcuda
