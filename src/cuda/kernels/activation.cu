#include "cuda/kernels/elements.h"
#include "cuda/kernels/rows.h"
#include "cuda/launch.h"

namespace epsweep::cuda {
namespace {

constexpr int kThreads = 256;

// `kGated`: the two halves of an input row are gate and up. Each thread turns kWidth neighbouring
// columns at a time.
template <typename Element, int kWidth, int kGated>
__global__ void activation_kernel(std::int64_t rows, std::int64_t cols, const Element* in,
                                  Element* out) {
  struct alignas(sizeof(Element) * kWidth) Pack {
    Element value[kWidth];
  };
  const std::int64_t packs = cols / kWidth, total = rows * packs;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < total;
       i += step) {
    const std::int64_t row = i / packs, col = i % packs * kWidth;
    const Element* from = in + row * (1 + kGated) * cols + col;
    const Pack gate = *reinterpret_cast<const Pack*>(from);
    const Pack up = *reinterpret_cast<const Pack*>(from + kGated * cols);
    Pack result;
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      const float value = load(&gate.value[k]);
      // NaN stays NaN in both.
      const float positive = value < 0.0F ? 0.0F : value;
      const float activated =
          kGated == 1 ? value / (1.0F + expf(-value)) * load(&up.value[k]) : positive * positive;
      store(activated, &result.value[k]);
    }
    *reinterpret_cast<Pack*>(out + row * cols + col) = result;
  }
}

template <typename Element, int kGated>
void activate(cudaStream_t stream, std::int64_t rows, std::int64_t cols, const void* in,
              void* out) {
  constexpr int kWide = Vector<Element>::kSize;
  const auto* from = static_cast<const Element*>(in);
  auto* to = static_cast<Element*>(out);
  const auto bits = reinterpret_cast<std::uintptr_t>(in) | reinterpret_cast<std::uintptr_t>(out);
  const bool wide = cols % kWide == 0 && bits % 16 == 0;
  const std::int64_t threads = rows * (wide ? cols / kWide : cols);
  const Grid grid{dim3(blocks_for(threads, kThreads)), dim3(kThreads)};
  if (wide) {
    launch(stream, grid, activation_kernel<Element, kWide, kGated>, rows, cols, from, to);
  } else {
    launch(stream, grid, activation_kernel<Element, 1, kGated>, rows, cols, from, to);
  }
}

template <int kGated>
void activate_typed(cudaStream_t stream, ElementType type, std::int64_t rows, std::int64_t cols,
                    const void* in, void* out) {
  if (type == ElementType::bf16) {
    activate<__nv_bfloat16, kGated>(stream, rows, cols, in, out);
  } else {
    activate<float, kGated>(stream, rows, cols, in, out);
  }
}

}  // namespace

void swiglu(cudaStream_t stream, ElementType type, std::int64_t rows, std::int64_t cols,
            const void* in, void* out) {
  activate_typed<1>(stream, type, rows, cols, in, out);
}

void squared_relu(cudaStream_t stream, ElementType type, std::int64_t rows, std::int64_t cols,
                  const void* in, void* out) {
  activate_typed<0>(stream, type, rows, cols, in, out);
}

}  // namespace epsweep::cuda
