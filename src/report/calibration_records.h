// What one record tells a calibration.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "costs/exchange_model.h"
#include "costs/ffn_table.h"

namespace epsweep {

// 0 where a damaged record has none.
int ep_size_of(const Json& record);

// Active slots of a rank and rows of a slot, averaged over ranks and layers, and the ranks' mean
// p50. Absent unless experts lie contiguously in packed groups, where a rank's slots are known.
std::optional<FfnSample> ffn_sample(const Json& record);

// Bytes of one exchange ("dispatch" or "combine") of the rank that moves most, by kind of link:
// those that leave a domain by the share that all counted copies have; metadata as if spread
// evenly.
ExchangeDemand demand_of(const Json& record, const std::string& stage);

// p50; absent where the stage is no exchange or has no times.
std::optional<double> transfer_s(const Json& record, const std::string& stage);

// Of the rank that has most.
double most_tokens(const Json& record);

}  // namespace epsweep
