// The CPU as a device: the calling thread is the lane, clock readings are the marks.
#pragma once

#include <cstdint>
#include <memory>

#include "device/backend.h"

namespace epsweep {

// Uninitialised, aligned to 64 bytes; from 4 MiB on to 2 MiB and with huge pages asked for (GEMMs
// over weights of normal pages lose up to a third to TLB misses). Touches no page, so memory lands
// where it is first used. Throws RunError naming the bytes.
Buffer make_cpu_buffer(std::int64_t bytes);

std::unique_ptr<Backend> make_cpu_backend(const BackendOptions& options);

}  // namespace epsweep
