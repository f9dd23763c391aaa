// The exchange replaced by a local copy of the same rows.
#pragma once

#include <memory>
#include <string>

#include "device/backend.h"
#include "device/transport.h"

namespace epsweep {

// Until end_rehearsal() a layer's exchanges are those of `real`, and what they brought is kept by
// routing. From then on the n-th exchange of a layer is a copy, on the lane, of what its n-th
// brought: as many rows and bytes, so values, counts and what travels with rows stay right and the
// checks after timing hold. What is kept has left the caches by then, unlike rows that were just
// packed: at EP1, where an exchange is a copy already, this one takes longer. No rank waits for
// another one in it; align() stays that of `real`.
//
// Throws RunError for an exchange that was not rehearsed or has another size, and for one of fixed
// capacity. Keeps, on the device, what a rank receives in all routings: counts, dispatched and
// returned rows (costs/memory.h).
std::unique_ptr<Transport> make_local_copy(std::unique_ptr<Transport> real, Backend& backend);

// The catalog entry that moves rows between ranks for the transport `name`: its own one, or what
// stands behind one that decorates, which is the backend's default, or the first other one of exact
// capacity where the libraries that were found cannot do that.
const TransportEntry& real_transport(const std::string& name, const std::string& backend);

}  // namespace epsweep
