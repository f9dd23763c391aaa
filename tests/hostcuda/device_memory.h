// What the doubles know of device memory. A test double.
#pragma once

#include <cstddef>

namespace hostcuda {

// Whether all of [at, at + bytes) lies in one allocation of cudaMalloc().
bool on_device(const void* at, std::size_t bytes);

}  // namespace hostcuda
