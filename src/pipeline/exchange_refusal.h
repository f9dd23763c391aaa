// Which transports, exchange units and ways of launching go together.
#pragma once

#include <optional>
#include <string>

#include "device/backend.h"
#include "pipeline/rank_work.h"

namespace epsweep {

// Why the point's exchange cannot run here: the libraries found, what the transport and the backend
// can do, the capacity it was given. Known before anything is allocated; absent if it can.
std::optional<std::string> exchange_refusal(const RankWork& work, const BackendInfo& backend);

}  // namespace epsweep
