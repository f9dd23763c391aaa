// Recorded counts as JSON, and the JSON beside TensorRT-LLM's.
#include "fuzz/fuzz_target.h"
#include "workload/recordings/trtllm.h"

namespace epsweep {

std::vector<std::string> fuzz_seeds() {
  return {R"({"logical_count": [[0,0,0],[1,2,3.5],[6,0,0.5]]})",
          R"({"logical_count": [[[0,0],[1,2]],[[0,0],[3,4]]], "other": {"a": [1e3, null]}})",
          R"({"num_experts": 256, "num_experts_per_token": 8, "num_slots": 288})"};
}

}  // namespace epsweep

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace epsweep;
  const std::string_view text = as_text(data, size);
  refuse_politely([&] { read_sglang_counts(text, "fuzz", {}); });
  refuse_politely([&] { read_sglang_counts(text, "fuzz", {.skip = 1, .max = 1}); });
  refuse_politely([&] { read_trtllm_meta(text, "fuzz"); });
  return 0;
}
