#include "base/build_info.h"

#include <git_revision.h>  // made at every build, see cmake/git_revision.cmake

namespace epsweep {

BuildInfo build_info() {
  return {.version = EPSWEEP_VERSION,
          .git_revision = EPSWEEP_GIT_REVISION,
          .build_type = EPSWEEP_BUILD_TYPE,
          .sanitizers = EPSWEEP_SANITIZE,
          .compiler = __VERSION__};
}

}  // namespace epsweep
