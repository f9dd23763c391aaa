#include "workload/recordings/cut.h"

#include <fmt/format.h>

#include "base/error.h"

namespace epsweep {

CutRange cut_range(const Cut& cut, std::int64_t num_recorded, const std::string& where,
                   const std::string& items) {
  // Something must be left, and as much as was asked for.
  const std::int64_t least = cut.max > 0 ? cut.max : 1;
  if (!cut.everything() && (cut.skip > num_recorded || least > num_recorded - cut.skip)) {
    throw ConfigError(fmt::format("{}: skip_{} {} and max_{} {} need {} {}, {} are recorded", where,
                                  items, cut.skip, items, cut.max, cut.skip + least, items,
                                  num_recorded));
  }
  return {cut.skip, cut.max > 0 ? cut.skip + cut.max : num_recorded};
}

}  // namespace epsweep
