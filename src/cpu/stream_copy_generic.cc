#include <cstring>

#include "cpu/stream_copy.h"

namespace epsweep {

void stream_copy(const void* from, void* to, std::int64_t bytes) {
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

}  // namespace epsweep
