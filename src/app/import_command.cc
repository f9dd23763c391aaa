#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "app/commands.h"
#include "base/error.h"
#include "base/text.h"
#include "plan/model_import.h"

namespace epsweep {
namespace {

namespace fs = std::filesystem;

std::string name_for(const ImportModelCommand& command) {
  if (!command.name.empty()) return command.name;
  const fs::path folder = fs::absolute(command.config).parent_path().filename();
  if (folder.empty()) throw ConfigError("import-model: pass --name, the config has no folder name");
  return folder.string();
}

// Which key each value came from goes to stderr, so that the model file can be piped.
void explain(const ModelImport& import) {
  std::size_t widest = 0;
  for (const ImportedValue& value : import.values) widest = std::max(widest, value.field.size());
  for (const ImportedValue& value : import.values) {
    fmt::print(stderr, "{:<{}}  {:<12} from {}\n", value.field, widest, value.value, value.key);
  }
  for (const std::string& note : import.notes) fmt::print(stderr, "note: {}\n", note);
}

}  // namespace

int run(const ImportModelCommand& command) {
  const std::string config = read_text_file(command.config);
  const ModelImport import = import_model(config, name_for(command), command.config);
  explain(import);
  const std::string text = model_shape_yaml(import.model);
  if (command.out.empty()) {
    fmt::print("{}", text);
    return static_cast<int>(ExitCode::ok);
  }
  if (fs::exists(command.out)) throw ConfigError(command.out + ": exists already");
  std::ofstream file(command.out);
  if (!(file << text) || !file.flush()) throw ConfigError(command.out + ": cannot be written");
  return static_cast<int>(ExitCode::ok);
}

}  // namespace epsweep
