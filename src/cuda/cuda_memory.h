// Device memory and page-locked host memory as buffers.
#pragma once

#include <cstdint>

#include "device/buffer.h"

namespace epsweep::cuda {

// Aligned to 256 bytes. Throws RunError naming the bytes and what is free.
Buffer make_device_buffer(std::int64_t bytes);
// Makes it at least so large; what it held is lost then.
void grow_buffer(Buffer& buffer, std::int64_t bytes);
// Host memory that copies of a stream may use without waiting for the host.
Buffer make_pinned_buffer(std::int64_t bytes);

}  // namespace epsweep::cuda
