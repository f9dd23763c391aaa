// A Hugging Face config.json to a ModelShape.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/model_shape.h"

namespace epsweep {

// Where one value came from: field "num_experts", key "n_routed_experts" (with "text_config." in
// front where nested; several keys joined by " + "), value "256". Derived values name their rule.
struct ImportedValue {
  std::string field, key, value;
};

struct ModelImport {
  ModelShape model;
  std::vector<ImportedValue> values;  // one per field, in ModelShape order
  std::vector<std::string> notes;     // what the config leaves open or the harness does not model
};

// Never falls back on a library's class defaults: a missing value that matters is an error, and so
// is a value that two keys state differently. `name` is the model's name in the result; `where`
// names the file in messages. Throws ConfigError.
ModelImport import_model(std::string_view config_json, const std::string& name,
                         const std::string& where);

}  // namespace epsweep
