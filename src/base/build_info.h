// Which build this is; goes into every result.
#pragma once

#include <string>

namespace epsweep {

struct BuildInfo {
  std::string version, git_revision, build_type, sanitizers, compiler;
};
BuildInfo build_info();

}  // namespace epsweep
