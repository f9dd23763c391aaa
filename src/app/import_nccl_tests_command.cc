#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "app/commands.h"
#include "base/error.h"
#include "base/text.h"
#include "report/nccl_tests_import.h"

namespace epsweep {

int run(const ImportNcclTestsCommand& command) {
  const NcclTestsImport import = import_nccl_tests(read_text_file(command.result), command.result);
  // To stderr, so that the file can be piped.
  for (const std::string& note : import.notes) fmt::print(stderr, "note: {}\n", note);
  const std::string text = import.replay.dump(1) + "\n";
  if (command.out.empty()) {
    fmt::print("{}", text);
    return static_cast<int>(ExitCode::ok);
  }
  if (std::filesystem::exists(command.out)) throw ConfigError(command.out + ": exists already");
  std::ofstream file(command.out);
  if (!(file << text) || !file.flush()) throw ConfigError(command.out + ": cannot be written");
  return static_cast<int>(ExitCode::ok);
}

}  // namespace epsweep
