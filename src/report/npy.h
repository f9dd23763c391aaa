// NumPy's .npy format 1.0, as much of it as dense tables of times need.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace epsweep {

// Little-endian float64 in C order.
struct NpyArray {
  std::vector<int> shape;
  std::vector<double> values;
};

// Atomically: readers see the old file or the new one. Throws RunError.
void write_npy_array(const std::string& path, std::span<const int> shape,
                     std::span<const double> values);

// An array with that many axes. Throws RunError "PATH: not a `what`: ..." for anything else.
NpyArray read_npy_array(const std::string& path, std::size_t num_axes, const std::string& what);

}  // namespace epsweep
