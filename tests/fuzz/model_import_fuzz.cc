// Hugging Face config.json files.
#include "base/json.h"
#include "fuzz/fuzz_target.h"
#include "plan/model_import.h"

namespace epsweep {

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  const std::string path = EPSWEEP_SOURCE_DIR "/tests/data/hf_config_facts.json";
  const Json configs = parse_json(read_text_file(path), path);
  for (const auto& [name, config] : configs.items()) {
    for (const auto& [key, value] : config.items()) {
      if (value.is_object()) seeds.push_back(to_json_line(value));
    }
    seeds.push_back(to_json_line(config));
  }
  return seeds;
}

}  // namespace epsweep

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace epsweep;
  refuse_politely([&] { import_model(as_text(data, size), "fuzz", "config.json"); });
  return 0;
}
