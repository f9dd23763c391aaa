#include "cuda/kernels/elements.h"
#include "cuda/kernels/payload.h"
#include "cuda/launch.h"

namespace epsweep::cuda {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kPerWord = 8;

// One random word gives eight neighbouring values, the lowest byte the first.
template <typename Element>
__global__ void fill_kernel(RandomStream values, std::int64_t begin, float unit, std::int64_t count,
                            Element* out) {
  const std::int64_t first_word = begin / kPerWord,
                     words = (begin + count + kPerWord - 1) / kPerWord;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t w = first_word + static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
       w < words; w += step) {
    const std::uint64_t word = values.bits(static_cast<std::uint64_t>(w));
#pragma unroll
    for (int lane = 0; lane < kPerWord; ++lane) {
      const std::int64_t at = w * kPerWord + lane - begin;
      if (at < 0 || at >= count) continue;
      const auto byte = static_cast<std::int8_t>(word >> (8 * lane));
      store(static_cast<float>(2 * byte + 1) * unit, out + at);
    }
  }
}

}  // namespace

void fill_payload(cudaStream_t stream, RandomStream values, std::int64_t begin, float unit,
                  std::int64_t count, ElementType type, void* out) {
  const Grid grid{dim3(blocks_for(count / kPerWord + 2, kThreads)), dim3(kThreads)};
  if (type == ElementType::bf16) {
    launch(stream, grid, fill_kernel<__nv_bfloat16>, values, begin, unit, count,
           static_cast<__nv_bfloat16*>(out));
  } else {
    launch(stream, grid, fill_kernel<float>, values, begin, unit, count, static_cast<float*>(out));
  }
}

}  // namespace epsweep::cuda
