// What the doubles say they are: a test may make them something else.
#pragma once

namespace hostcuda {

constexpr int kComputeCapability = 90;
// The first release of cuBLAS whose grouped layouts are trusted there.
constexpr int kCublasVersion = 130700;

// 90 for 9.0.
void set_compute_capability(int capability);
// 130700 for 13.7.0.
void set_cublas_version(int version);

}  // namespace hostcuda
