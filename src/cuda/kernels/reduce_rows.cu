#include "cuda/kernels/elements.h"
#include "cuda/kernels/rows.h"
#include "cuda/launch.h"

namespace epsweep::cuda {
namespace {

constexpr int kThreads = 128;

// Which rows are added up for one output row: top_k of them, or a segment of any length.
struct EqualSegments {
  int top_k;
  __device__ std::int64_t begin(std::int64_t segment) const { return segment * top_k; }
};
struct ListedSegments {
  const std::int32_t* first;
  __device__ std::int64_t begin(std::int64_t segment) const { return first[segment]; }
};

// 16 bytes at a time where that many are there.
template <int kWidth, typename Out>
__device__ void store_all(const float (&sum)[kWidth], Out* to) {
  constexpr int kMost = 16 / static_cast<int>(sizeof(Out));
  constexpr int kPart = kWidth < kMost ? kWidth : kMost;
  struct alignas(sizeof(Out) * kPart) Part {
    Out value[kPart];
  };
#pragma unroll
  for (int i = 0; i < kWidth; i += kPart) {
    Part part;
#pragma unroll
    for (int k = 0; k < kPart; ++k) store(sum[i + k], &part.value[k]);
    *reinterpret_cast<Part*>(to + i) = part;
  }
}

// A thread owns kWidth neighbouring columns of an output row at a time; blockIdx.y walks columns.
template <typename In, typename Out, int kWidth, typename Segments>
__global__ void reduce_kernel(Segments segments, std::int64_t count, std::int64_t cols,
                              const std::int32_t* row, const float* weights, const In* in,
                              Out* out) {
  struct alignas(sizeof(In) * kWidth) Pack {
    In value[kWidth];
  };
  const std::int64_t col =
      (static_cast<std::int64_t>(blockIdx.y) * kThreads + threadIdx.x) * kWidth;
  if (col >= cols) return;
  for (std::int64_t segment = blockIdx.x; segment < count; segment += gridDim.x) {
    float sum[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) sum[i] = 0.0F;
    const std::int64_t end = segments.begin(segment + 1);
    for (std::int64_t j = segments.begin(segment); j < end; ++j) {
      const float weight = weights == nullptr ? 1.0F : weights[j];
      const Pack pack = *reinterpret_cast<const Pack*>(in + row[j] * cols + col);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) sum[i] = fmaf(weight, load(&pack.value[i]), sum[i]);
    }
    store_all(sum, out + segment * cols + col);
  }
}

template <typename In, typename Out, typename Segments>
void reduce(cudaStream_t stream, Segments segments, std::int64_t count, std::int64_t cols,
            const std::int32_t* row, const float* weights, const void* in, void* out) {
  constexpr int kWide = Vector<In>::kSize;
  const auto* rows = static_cast<const In*>(in);
  auto* sums = static_cast<Out*>(out);
  const auto bits = reinterpret_cast<std::uintptr_t>(in) | reinterpret_cast<std::uintptr_t>(out);
  const bool wide = cols % kWide == 0 && bits % 16 == 0;
  const std::int64_t threads = wide ? cols / kWide : cols;
  const Grid grid{dim3(blocks_for(count, 1), blocks_for(threads, kThreads)), dim3(kThreads)};
  if (wide) {
    launch(stream, grid, reduce_kernel<In, Out, kWide, Segments>, segments, count, cols, row,
           weights, rows, sums);
  } else {
    launch(stream, grid, reduce_kernel<In, Out, 1, Segments>, segments, count, cols, row, weights,
           rows, sums);
  }
}

template <typename In>
void reduce_segments(cudaStream_t stream, const SegmentArguments& a) {
  const ListedSegments segments{a.first};
  if (a.out_type == ElementType::bf16) {
    reduce<In, __nv_bfloat16>(stream, segments, a.segments, a.cols, a.row, a.weights, a.in, a.out);
  } else {
    reduce<In, float>(stream, segments, a.segments, a.cols, a.row, a.weights, a.in, a.out);
  }
}

}  // namespace

void weighted_reduce(cudaStream_t stream, ElementType type, int top_k, const std::int32_t* position,
                     const float* weights, std::int64_t tokens, std::int64_t cols, const void* in,
                     float* out) {
  const EqualSegments segments{top_k};
  if (type == ElementType::bf16) {
    reduce<__nv_bfloat16, float>(stream, segments, tokens, cols, position, weights, in, out);
  } else {
    reduce<float, float>(stream, segments, tokens, cols, position, weights, in, out);
  }
}

void segment_reduce(cudaStream_t stream, const SegmentArguments& arguments) {
  if (arguments.in_type == ElementType::bf16) {
    reduce_segments<__nv_bfloat16>(stream, arguments);
  } else {
    reduce_segments<float>(stream, arguments);
  }
}

}  // namespace epsweep::cuda
