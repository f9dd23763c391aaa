// `predict --virtual-ep N`: compute measured on the ranks of this launch, exchanges predicted.
#pragma once

#include <functional>

#include "app/commands.h"
#include "app/prediction_source.h"
#include "plan/sweep_spec.h"

namespace epsweep {

// Throws ConfigError for options of --virtual-ep that mean nothing, before anything is read.
void check_virtual_options(const PredictCommand& command);

// Starts MPI. `make_source(spec)` says where exchanges come from and puts costs that a hardware
// file declares into the spec; of a calibration it is called on rank 0 alone, which reads its
// files.
using SourceMaker = std::function<PredictionSource(SweepSpec& spec)>;
int predict_with_virtual_ranks(const PredictCommand& command, const RunCommand& launch,
                               const SourceMaker& make_source);

}  // namespace epsweep
