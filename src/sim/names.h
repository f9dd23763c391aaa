// Names of the simulated engine in catalogs.
#pragma once

namespace epsweep {

inline constexpr const char* kSimBackend = "sim";
inline constexpr const char* kDeclared = "declared";  // its transport and grouped GEMM

}  // namespace epsweep
