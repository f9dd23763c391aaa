// A host vector as a buffer of the CPU backend, not owned.
#pragma once

#include <vector>

#include "device/buffer.h"

namespace epsweep {

template <typename T>
Buffer host_view(const std::vector<T>& values) {
  return {const_cast<T*>(values.data()), static_cast<std::int64_t>(values.size() * sizeof(T)),
          [](void*) {}};
}

}  // namespace epsweep
