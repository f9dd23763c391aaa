// Recorded routes as JSON lines.
#include "fuzz/fuzz_target.h"
#include "workload/recordings/trace.h"

namespace epsweep {

std::vector<std::string> fuzz_seeds() {
  std::string dummies;
  for (int i = 0; i < 1001; ++i) dummies += "{\"layer\":0,\"topk_ids\":[1,2]}\n";
  return {
      "{\"meta\": 1}\n{\"layer\": 0, \"token\": 0, \"experts\": [0, 63]}\n"
      "{\"layer\": 0, \"token\": 1, \"experts\": [-1, -1]}\n",
      "{\"type\":\"meta\",\"top_k\":2}\n{\"type\":\"route\",\"req_id\":\"0\",\"token_idx\":5,"
      "\"layer\":3,\"topk_ids\":[43,5],\"topk_weights\":[0.25,0.125]}\n",
      dummies};
}

}  // namespace epsweep

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace epsweep;
  for (const Cut cut : {Cut{}, Cut{.skip = 1, .max = 1}}) {
    refuse_politely([&] {
      read_trace_lines(as_text(data, size), "fuzz", {.num_experts = 64, .top_k = 2}, cut);
    });
  }
  return 0;
}
