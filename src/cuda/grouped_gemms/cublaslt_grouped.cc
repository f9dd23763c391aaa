// cuBLASLt's grouped layouts: all experts in one call that reads their rows on the device.
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "cuda/cuda_lane.h"
#include "cuda/cuda_memory.h"
#include "cuda/device_choice.h"
#include "cuda/group_table.h"
#include "cuda/grouped_layout_versions.h"
#include "cuda/matmul.h"
#include "cuda/optional/grouped_layouts.h"
#include "cuda/shared_weights_gemm.h"

namespace epsweep::cuda {
namespace {

constexpr auto kType = CUDA_R_16BF;

// In cuBLAS's column-major words, as in matmul.h: D (n x rows) = W^T (k x n) * X (k x rows). Scales
// are on the device: with scales of the host cuBLAS 13.4 to 13.7 can be wrong on Hopper (NVIDIA
// 6681084).
MatmulDesc make_desc() {
  cublasLtMatmulDesc_t raw = nullptr;
  check(cublasLtMatmulDescCreate(&raw, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
  MatmulDesc desc(raw);
  const cublasOperation_t transposed = CUBLAS_OP_T;
  check(cublasLtMatmulDescSetAttribute(raw, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                       sizeof(transposed)),
        "cublasLtMatmulDescSetAttribute(TRANSA)");
  const cublasLtPointerMode_t on_device = CUBLASLT_POINTER_MODE_DEVICE;
  check(cublasLtMatmulDescSetAttribute(raw, CUBLASLT_MATMUL_DESC_POINTER_MODE, &on_device,
                                       sizeof(on_device)),
        "cublasLtMatmulDescSetAttribute(POINTER_MODE)");
  return desc;
}

// 1 and 0, 16 bytes apart.
constexpr std::int64_t kScaleDistance = 16 / sizeof(float);
Buffer make_scales() {
  Buffer host = make_pinned_buffer(2 * 16);
  host.as<float>()[0] = 1;
  host.as<float>()[kScaleDistance] = 0;
  Buffer scales = make_device_buffer(host.bytes());
  const StreamHandle stream = make_stream();
  EPS_CUDA(cudaMemcpyAsync(scales.data(), host.data(), static_cast<std::size_t>(host.bytes()),
                           cudaMemcpyHostToDevice, stream.get()));
  EPS_CUDA(cudaStreamSynchronize(stream.get()));
  return scales;
}

// Groups, and the rows an algorithm is chosen for. The number of groups is part of a layout.
struct Load {
  int num_groups = 0;
  std::int64_t mean_rows = 0;
  std::int64_t rows = 0;
};

Load load_of(std::span<const std::int64_t> rows_per_expert) {
  Load load;
  for (const std::int64_t rows : rows_per_expert) {
    load.num_groups += rows > 0 ? 1 : 0;
    load.rows += rows;
  }
  if (load.num_groups > 0) {
    load.mean_rows = algorithm_rows((load.rows + load.num_groups - 1) / load.num_groups);
  }
  return load;
}

class CublasltGrouped final : public SharedWeightsGemm {
 public:
  explicit CublasltGrouped(const GemmShape& shape)
      : SharedWeightsGemm(shape), groups_(shape), desc_(make_desc()) {}

  void warm(std::span<const std::int64_t> rows_per_expert) override {
    groups_.check(rows_per_expert);
    const Load load = load_of(rows_per_expert);
    if (load.num_groups == 0 || plans_.contains({load.num_groups, load.mean_rows})) return;
    const GroupArrays& at = groups_.arrays();
    const auto layout = [&](const std::int32_t* rows, const std::int32_t* cols) {
      return make_grouped_layout(kType, load.num_groups, {rows, cols, rows});
    };
    Plan plan{.w = layout(at.k, at.n), .x = layout(at.k, at.rows), .y = layout(at.n, at.rows)};
    choose_algorithm(load, plan);
    plans_.emplace(Key{load.num_groups, load.mean_rows}, std::move(plan));
  }

  GemmWork run(Lane& lane, const Buffer& x, Buffer& y,
               std::span<const std::int64_t> rows_per_expert) override {
    const Load load = load_of(rows_per_expert);
    if (load.num_groups == 0) return {};
    const auto plan = plans_.find({load.num_groups, load.mean_rows});
    EPS_EXPECT(plan != plans_.end(), "a grouped product of rows that were not prepared");
    const cudaStream_t stream = stream_of(lane);
    const Groups groups = groups_.describe(
        stream, {.x = x.data(), .w = weights().of(0), .y = y.data()}, rows_per_expert);
    const GroupArrays& at = groups_.arrays();
    const auto* scales = static_cast<const float*>(scales_.data());
    const Plan& own = plan->second;
    check(cublasLtMatmul(cublaslt(), desc_.get(), scales, at.w, own.w.get(), at.x, own.x.get(),
                         scales + kScaleDistance, at.y, own.y.get(), at.y, own.y.get(),
                         &own.algorithm, workspace_.data(),
                         static_cast<std::size_t>(workspace_.bytes()), stream),
          "cublasLtMatmul(grouped)");
    return {.kernel_calls = groups.launches + 1,
            .computed_rows = load.rows,
            .stored_rows = load.rows,
            .workspace_bytes = workspace_.bytes() + groups_.bytes(),
            .choice = nullptr};
  }

 private:
  struct Key {
    int num_groups;
    std::int64_t mean_rows;
    auto operator<=>(const Key&) const = default;
  };
  struct Plan {
    MatrixLayout w, x, y;
    cublasLtMatmulAlgo_t algorithm{};
  };

  void choose_algorithm(const Load& load, Plan& plan) const {
    const MatmulPreference preference = make_matmul_preference();
    set_mean_dims(preference.get(),
                  {.rows = shape().n, .cols = load.mean_rows, .summed = shape().k});
    cublasLtMatmulHeuristicResult_t result{};
    int found = 0;
    check(cublasLtMatmulAlgoGetHeuristic(cublaslt(), desc_.get(), plan.w.get(), plan.x.get(),
                                         plan.y.get(), plan.y.get(), preference.get(), 1, &result,
                                         &found),
          "cublasLtMatmulAlgoGetHeuristic(grouped)");
    if (found == 0) {
      throw RunError(fmt::format("cuBLASLt has no grouped algorithm for {} groups of {} x {} x {}",
                                 load.num_groups, load.mean_rows, shape().n, shape().k));
    }
    plan.algorithm = result.algo;
  }

  GroupTable groups_;
  MatmulDesc desc_;
  Buffer scales_ = make_scales();
  Buffer& workspace_ = library_workspace(0);
  std::map<Key, Plan> plans_;
};

std::optional<std::string> refuses(const GemmShape& shape) {
  if (!has_grouped_layouts())
    return "this program was built against cuBLASLt without grouped layouts";
  if (shape.dtype != DType::bf16) return "bf16 only";
  if (const auto reason = refuse_narrow_rows(shape)) return reason;
  return refuse_grouped_layouts(static_cast<int>(cublasLtGetVersion()),
                                current_compute_capability());
}

const bool kAdded = GroupedGemmCatalog::instance().add(
    {.name = "cublaslt_grouped",
     .backend = "cuda",
     .summary = "cuBLASLt's grouped layouts: one call, shapes on the device",
     .refuses = refuses,
     .make = [](const GemmShape& shape, int) -> std::unique_ptr<GroupedGemm> {
       return std::make_unique<CublasltGrouped>(shape);
     }});

}  // namespace
}  // namespace epsweep::cuda
