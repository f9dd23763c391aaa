// The transport that stands for "what if the exchange were a local copy of the same rows".
#pragma once

#include <string_view>

namespace epsweep {

// Its name in experiments, records and the catalog. A counterfactual: nothing travels while it is
// timed, so it never competes with transports, and nothing it takes is an exchange's time.
inline constexpr std::string_view kLocalCopy = "local_copy";

}  // namespace epsweep
