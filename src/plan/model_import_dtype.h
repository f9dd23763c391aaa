// In which number format a model's experts are published.
#pragma once

#include <optional>
#include <string>

#include "plan/model_import_config.h"

namespace epsweep {

// bf16, fp8, mxfp4, ...; absent if the config does not say.
std::optional<Fact<std::string>> published_dtype(const HfConfig& config);

}  // namespace epsweep
