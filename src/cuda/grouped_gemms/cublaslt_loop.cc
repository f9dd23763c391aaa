// The ungrouped baseline: one cuBLASLt product for each expert with rows, on one stream or spread
// over four.
#include <vector>

#include "cuda/cuda_lane.h"
#include "cuda/cuda_memory.h"
#include "cuda/fp8_support.h"
#include "cuda/matmul.h"
#include "cuda/quantised_inputs.h"
#include "cuda/shared_weights_gemm.h"
#include "cuda/slot_plan.h"

namespace epsweep::cuda {
namespace {

// Streams beside the lane, and what keeps them in its order.
struct Branch {
  StreamHandle stream = make_stream();
  EventHandle done = make_wait_event();
  Buffer* workspace = nullptr;
};

// Inputs of fp8 are quantised first, all of them in one launch. Where products need more rows than
// their experts have, their outputs go to memory of the kernel's own and are copied from there.
class CublasltLoop final : public SharedWeightsGemm {
 public:
  CublasltLoop(const GemmShape& shape, int num_streams)
      : SharedWeightsGemm(shape),
        matmul_({.n = shape.n, .k = shape.k, .dtype = shape.dtype}),
        workspace_(library_workspace(0)),
        branches_(static_cast<std::size_t>(num_streams - 1)),
        inputs_(shape),
        slots_(shape.num_experts) {
    int stream = 0;
    for (Branch& branch : branches_) branch.workspace = &library_workspace(++stream);
  }

  void warm(std::span<const std::int64_t> rows_per_expert) override {
    const DType dtype = shape().dtype;
    for (const std::int64_t rows : rows_per_expert) matmul_.prepare(product_rows(dtype, rows));
    if (!is_fp8(dtype)) return;
    lay_out(rows_per_expert);
    inputs_.reserve(slots_.stored_rows());
    if (has_own_outputs()) grow_buffer(outputs_, slots_.stored_rows() * y_row_bytes());
  }

  GemmWork run(Lane& lane, const Buffer& x, Buffer& y,
               std::span<const std::int64_t> rows_per_expert) override {
    const cudaStream_t stream = stream_of(lane);
    GemmWork work;
    Place place{.x = static_cast<const std::byte*>(x.data()),
                .y = static_cast<std::byte*>(y.data())};
    if (is_fp8(shape().dtype)) {
      lay_out(rows_per_expert);
      place = quantise(stream, x, place.y, work);
    }
    multiply(stream, place, rows_per_expert, work);
    if (is_fp8(shape().dtype) && has_own_outputs()) copy_outputs(stream, y, work);
    work.workspace_bytes = kMatmulWorkspaceBytes * static_cast<std::int64_t>(branches_.size() + 1) +
                           inputs_.bytes() + outputs_.bytes();
    return work;
  }

 private:
  // Where the first product finds its operands.
  struct Place {
    const std::byte* x = nullptr;
    std::byte* y = nullptr;
  };

  void lay_out(std::span<const std::int64_t> rows_per_expert) {
    slots_.lay_out(rows_per_expert,
                   [this](std::int64_t rows) { return product_rows(shape().dtype, rows); });
  }
  bool has_own_outputs() const { return slots_.stored_rows() > slots_.rows(); }

  Place quantise(cudaStream_t stream, const Buffer& x, std::byte* y, GemmWork& work) {
    inputs_.quantise(stream, slots_, x.data());
    work.kernel_calls += QuantisedInputs::launches(slots_);
    return {.x = static_cast<const std::byte*>(inputs_.rows_at(0)),
            .y = has_own_outputs() ? static_cast<std::byte*>(outputs_.data()) : y};
  }

  void multiply(cudaStream_t stream, Place place, std::span<const std::int64_t> rows_per_expert,
                GemmWork& work) {
    fork(stream);
    const std::int64_t x_bytes = is_fp8(shape().dtype) ? shape().k : x_row_bytes();
    std::size_t products = 0;
    for (int expert = 0; expert < shape().num_experts; ++expert) {
      const std::int64_t rows =
          product_rows(shape().dtype, rows_per_expert[static_cast<std::size_t>(expert)]);
      if (rows == 0) continue;
      const std::size_t turn = products++ % (branches_.size() + 1);
      Branch* branch = turn == 0 ? nullptr : &branches_[turn - 1];
      matmul_.run(branch == nullptr ? stream : branch->stream.get(), rows,
                  {.x = place.x,
                   .w = weights().of(expert),
                   .y = place.y,
                   .x_scales = inputs_.scales_at(work.computed_rows),
                   .w_scales = weights().scales_of(expert)},
                  branch == nullptr ? workspace_ : *branch->workspace);
      place.x += rows * x_bytes;
      place.y += rows * y_row_bytes();
      work.computed_rows += rows;
    }
    join(stream);
    work.kernel_calls += static_cast<std::int64_t>(products);
    work.stored_rows = work.computed_rows;
  }

  void copy_outputs(cudaStream_t stream, Buffer& y, GemmWork& work) {
    for (const ExpertSlots& part : slots_.parts()) {
      out_of_slots(stream, part, y_row_bytes(), outputs_.data(), y.data());
      ++work.kernel_calls;
    }
  }

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
  Buffer& workspace_;
  std::vector<Branch> branches_;
  QuantisedInputs inputs_;  // and the rest of fp8
  SlotPlan slots_;
  Buffer outputs_;
  EventHandle begin_ = make_wait_event();
};

std::int64_t scratch_bytes(const GemmShape& shape, std::span<const std::int64_t> rows_per_expert) {
  if (!is_fp8(shape.dtype)) return 0;
  std::int64_t routed = 0, stored = 0;
  for (const std::int64_t rows : rows_per_expert) {
    routed += rows;
    stored += product_rows(shape.dtype, rows);
  }
  const std::int64_t outputs = stored > routed ? stored * y_row_bytes(shape) : 0;
  return QuantisedInputs::bytes_for(shape, stored) + outputs;
}

constexpr int kManyStreams = 4;

const bool kOneAdded = GroupedGemmCatalog::instance().add(
    {.name = "cublaslt_loop",
     .backend = "cuda",
     .summary = "ungrouped baseline: one cuBLASLt call per expert",
     .refuses = refuse_cublaslt,
     .make = [](const GemmShape& shape, int) -> std::unique_ptr<GroupedGemm> {
       return std::make_unique<CublasltLoop>(shape, 1);
     },
     .scratch_bytes = scratch_bytes});
const bool kManyAdded = GroupedGemmCatalog::instance().add(
    {.name = "cublaslt_loop_4_streams",
     .backend = "cuda",
     .summary = "the same on four forked streams",
     .refuses = refuse_cublaslt,
     .make = [](const GemmShape& shape, int) -> std::unique_ptr<GroupedGemm> {
       return std::make_unique<CublasltLoop>(shape, kManyStreams);
     },
     .scratch_bytes = scratch_bytes});

}  // namespace
}  // namespace epsweep::cuda
