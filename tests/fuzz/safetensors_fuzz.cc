// Safetensors, alone and as TensorRT-LLM's recordings.
#include <cstring>

#include "fuzz/fuzz_target.h"
#include "workload/recordings/trtllm.h"

namespace epsweep {
namespace {

std::string with_header(const std::string& header, std::size_t num_bytes) {
  std::string file(8, '\0');
  const std::uint64_t length = header.size();
  std::memcpy(file.data(), &length, 8);
  file += header;
  for (std::size_t i = 0; i < num_bytes; ++i) file += static_cast<char>(i % 8 == 0 ? i / 8 % 4 : 0);
  return file;
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  return {
      with_header(R"({"7_3":{"dtype":"I64","shape":[4],"data_offsets":[0,32]},)"
                  R"("7_4":{"dtype":"I64","shape":[4],"data_offsets":[32,64]}})",
                  64),
      with_header(R"({"0_0":{"dtype":"I64","shape":[3,2],"data_offsets":[0,48]}})", 48),
      with_header(R"({"__metadata__":{"a":"b"},"x":{"dtype":"F32","shape":[2,2],"data_offsets":)"
                  R"([0,16]},"y":{"dtype":"BF16","shape":[],"data_offsets":[16,18]},)"
                  R"("z":{"dtype":"F16","shape":[0],"data_offsets":[18,18]}})",
                  18),
      with_header("{}", 0)};
}

}  // namespace epsweep

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace epsweep;
  const std::string_view bytes = as_text(data, size);
  refuse_politely([&] {
    for (const Tensor& tensor : read_safetensors(bytes, "fuzz")) {
      refuse_politely([&] { tensor_numbers(tensor); });
      refuse_politely([&] { tensor_integers(tensor); });
    }
  });
  refuse_politely([&] {
    TrtllmCounts counts({.num_experts = 4, .top_k = 2});
    counts.add_rank(bytes, "rank0");
    counts.add_rank(bytes, "rank1");
    counts.finish("fuzz", {});
  });
  refuse_politely([&] {
    TrtllmRoutes routes({.num_experts = 4, .top_k = 2});
    routes.add_rank(bytes, "rank0");
    routes.finish("fuzz", {.skip = 1, .max = 0});
  });
  return 0;
}
