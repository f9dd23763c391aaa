// What every fuzz target is made of. Rule: a reader throws ConfigError or nothing; it never
// crashes, hangs, or allocates by a length that it has not compared with what it was given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/text.h"

// libFuzzer's entry point; fuzz_driver.cc calls it where there is no libFuzzer. Always returns 0.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace epsweep {

// Well-formed inputs to start from.
std::vector<std::string> fuzz_seeds();

inline std::string_view as_text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Whatever else the call throws ends the program, which is a finding.
template <typename Call>
void refuse_politely(Call call) {
  try {
    call();
  } catch (const ConfigError&) {
  }
}

// All files of a folder of the source tree.
inline std::vector<std::string> shipped_texts(const std::string& folder) {
  const std::string path = EPSWEEP_SOURCE_DIR "/" + folder;
  std::vector<std::string> texts;
  for (const std::string& name : file_names(path)) {
    texts.push_back(read_text_file(path + "/" + name));
  }
  return texts;
}

}  // namespace epsweep
