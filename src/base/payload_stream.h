// The values the harness computes with, as a stream that any rank and any device can regenerate.
// Values have at most eight significant bits, so bf16 and fp32 hold them exactly.
#pragma once

#include <cstdint>
#include <span>

#include "base/dtype.h"
#include "base/random.h"

namespace epsweep {

// Value i is an odd number from -255 to 255 times `unit`: with s byte i mod 8 (the lowest first) of
// word i / 8 as a signed number, (2 * s + 1) * unit. `unit` is a power of two.
struct PayloadStream {
  RandomStream words;
  float unit = 1.0F;
};

// Values begin, begin + 1, ...
void fill_payload(const PayloadStream& stream, std::int64_t begin, std::span<float> out);
// The same as bfloat16 bit patterns.
void fill_payload(const PayloadStream& stream, std::int64_t begin, std::span<std::uint16_t> out);
// `count` of them as elements of that type, which is not fp8.
void fill_payload(const PayloadStream& stream, std::int64_t begin, std::int64_t count, DType dtype,
                  void* out);

}  // namespace epsweep
