// CUTLASS's grouped kernel for Hopper: one launch that reads the experts' rows on the device.
#include <algorithm>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "base/error.h"
#include "cuda/cuda_lane.h"
#include "cuda/cuda_memory.h"
#include "cuda/cutlass_choice.h"
#include "cuda/device_choice.h"
#include "cuda/group_table.h"
#include "cuda/matmul.h"
#include "cuda/optional/cutlass_tile.h"
#include "cuda/shared_weights_gemm.h"

namespace epsweep::cuda {
namespace {

int count_multiprocessors() {
  int device = 0, count = 0;
  EPS_CUDA(cudaGetDevice(&device));
  EPS_CUDA(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
  return count;
}

const CutlassTile& tile_for(std::span<const std::int64_t> rows_per_expert) {
  return cutlass_rows(rows_per_expert) == CutlassRows::few ? *cutlass_few_rows()
                                                           : *cutlass_many_rows();
}

class CutlassGrouped final : public SharedWeightsGemm {
 public:
  explicit CutlassGrouped(const GemmShape& shape)
      : SharedWeightsGemm(shape),
        groups_(shape),
        num_multiprocessors_(count_multiprocessors()),
        workspace_(make_device_buffer(
            std::max(cutlass_few_rows()->workspace_bytes(num_multiprocessors_),
                     cutlass_many_rows()->workspace_bytes(num_multiprocessors_)))) {}

  void warm(std::span<const std::int64_t> rows_per_expert) override {
    groups_.check(rows_per_expert);
  }

  GemmWork run(Lane& lane, const Buffer& x, Buffer& y,
               std::span<const std::int64_t> rows_per_expert) override {
    const cudaStream_t stream = stream_of(lane);
    const Groups groups = groups_.describe(
        stream, {.x = x.data(), .w = weights().of(0), .y = y.data()}, rows_per_expert);
    if (groups.count == 0) return {};
    const CutlassTile& tile = tile_for(rows_per_expert);
    const char* refusal =
        tile.run(stream, groups.count, groups_.arrays(),
                 {.num_multiprocessors = num_multiprocessors_, .workspace = workspace_.data()});
    if (refusal != nullptr) throw RunError(fmt::format("CUTLASS's grouped kernel: {}", refusal));
    return {.kernel_calls = groups.launches + 1,
            .computed_rows = token_tiles(rows_per_expert, tile.tokens) * tile.tokens,
            .stored_rows = groups.rows,
            .workspace_bytes = workspace_.bytes() + groups_.bytes(),
            .choice = nullptr};
  }

 private:
  GroupTable groups_;
  int num_multiprocessors_;
  // Where the kernel's blocks keep the descriptors of the matrices they are at.
  Buffer workspace_;
};

std::optional<std::string> refuses(const GemmShape& shape) {
  if (cutlass_few_rows() == nullptr) {
    return "this program was built without CUTLASS (EPSWEEP_CUTLASS_INCLUDE_DIR)";
  }
  if (shape.dtype != DType::bf16) return "bf16 only";
  if (const auto reason = refuse_narrow_rows(shape)) return reason;
  return refuse_all_but_hopper(current_compute_capability());
}

const bool kAdded = GroupedGemmCatalog::instance().add(
    {.name = "cutlass_grouped",
     .backend = "cuda",
     .summary = "CUTLASS's grouped kernel for Hopper: one launch, shapes on the device",
     .refuses = refuses,
     .make = [](const GemmShape& shape, int) -> std::unique_ptr<GroupedGemm> {
       return std::make_unique<CutlassGrouped>(shape);
     }});

}  // namespace
}  // namespace epsweep::cuda
