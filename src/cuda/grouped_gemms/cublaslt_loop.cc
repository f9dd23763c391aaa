// The ungrouped baseline: one cuBLASLt product for each expert with rows, on one stream or spread
// over four.
#include <array>

#include "cuda/cuda_lane.h"
#include "cuda/cuda_memory.h"
#include "cuda/matmul.h"
#include "cuda/shared_weights_gemm.h"

namespace epsweep::cuda {
namespace {

// Streams beside the lane, and what keeps them in its order.
struct Branch {
  StreamHandle stream = make_stream();
  EventHandle done = make_wait_event();
  Buffer workspace = make_device_buffer(kMatmulWorkspaceBytes);
};

class CublasltLoop final : public SharedWeightsGemm {
 public:
  CublasltLoop(const GemmShape& shape, int num_streams)
      : SharedWeightsGemm(shape),
        matmul_({.n = shape.n, .k = shape.k, .dtype = shape.dtype}),
        workspace_(make_device_buffer(kMatmulWorkspaceBytes)),
        branches_(static_cast<std::size_t>(num_streams - 1)) {}

  void warm(std::span<const std::int64_t> rows_per_expert) override {
    for (const std::int64_t rows : rows_per_expert) matmul_.prepare(rows);
  }

  GemmWork run(Lane& lane, const Buffer& x, Buffer& y,
               std::span<const std::int64_t> rows_per_expert) override {
    const cudaStream_t stream = stream_of(lane);
    fork(stream);
    const auto* from = static_cast<const std::byte*>(x.data());
    auto* to = static_cast<std::byte*>(y.data());
    GemmWork work;
    for (int expert = 0; expert < shape().num_experts; ++expert) {
      const std::int64_t rows = rows_per_expert[static_cast<std::size_t>(expert)];
      if (rows == 0) continue;
      const auto turn = static_cast<std::size_t>(work.kernel_calls) % (branches_.size() + 1);
      Branch* branch = turn == 0 ? nullptr : &branches_[turn - 1];
      matmul_.run(branch == nullptr ? stream : branch->stream.get(), rows,
                  {.x = from, .w = weights().of(expert), .y = to},
                  branch == nullptr ? workspace_ : branch->workspace);
      from += rows * x_row_bytes();
      to += rows * y_row_bytes();
      ++work.kernel_calls;
      work.computed_rows += rows;
    }
    join(stream);
    work.stored_rows = work.computed_rows;
    work.workspace_bytes = kMatmulWorkspaceBytes * static_cast<std::int64_t>(branches_.size() + 1);
    return work;
  }

 private:
  void fork(cudaStream_t stream) {
    if (branches_.empty()) return;
    EPS_CUDA(cudaEventRecord(begin_.get(), stream));
    for (const Branch& branch : branches_) {
      EPS_CUDA(cudaStreamWaitEvent(branch.stream.get(), begin_.get(), 0));
    }
  }
  void join(cudaStream_t stream) {
    for (const Branch& branch : branches_) {
      EPS_CUDA(cudaEventRecord(branch.done.get(), branch.stream.get()));
      EPS_CUDA(cudaStreamWaitEvent(stream, branch.done.get(), 0));
    }
  }

  Matmul matmul_;
  Buffer workspace_;
  std::vector<Branch> branches_;
  EventHandle begin_ = make_wait_event();
};

constexpr int kManyStreams = 4;

const bool kOneAdded = GroupedGemmCatalog::instance().add(
    {.name = "cublaslt_loop",
     .backend = "cuda",
     .summary = "ungrouped baseline: one cuBLASLt call per expert",
     .refuses = refuse_narrow_rows,
     .make = [](const GemmShape& shape, int) -> std::unique_ptr<GroupedGemm> {
       return std::make_unique<CublasltLoop>(shape, 1);
     }});
const bool kManyAdded = GroupedGemmCatalog::instance().add(
    {.name = "cublaslt_loop_4_streams",
     .backend = "cuda",
     .summary = "the same on four forked streams",
     .refuses = refuse_narrow_rows,
     .make = [](const GemmShape& shape, int) -> std::unique_ptr<GroupedGemm> {
       return std::make_unique<CublasltLoop>(shape, kManyStreams);
     }});

}  // namespace
}  // namespace epsweep::cuda
