// How a layer's work gets to the device.
#pragma once

namespace epsweep {

// direct: call by call, as the host issues it. graph: captured once per layer, then replayed as one
// piece, so that what the calls themselves cost can be told apart.
enum class Launch { direct, graph };

}  // namespace epsweep
