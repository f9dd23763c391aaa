#include "base/error.h"

#include <cstring>

#include <fmt/format.h>

namespace epsweep {

void contract_broken(const char* condition, const char* file, int line,
                     const std::string& message) {
  const char* slash = std::strrchr(file, '/');
  throw RunError(fmt::format("internal error: {} ({}:{}: expected {})", message,
                             slash != nullptr ? slash + 1 : file, line, condition));
}

}  // namespace epsweep
