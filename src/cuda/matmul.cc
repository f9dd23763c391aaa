#include "cuda/matmul.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "cuda/cublas_handle.h"
#include "cuda/cuda_memory.h"

namespace epsweep::cuda {
namespace {

MatrixLayout make_layout(cudaDataType_t type, std::int64_t rows, std::int64_t cols, int batch) {
  cublasLtMatrixLayout_t raw = nullptr;
  check(cublasLtMatrixLayoutCreate(&raw, type, static_cast<std::uint64_t>(rows),
                                   static_cast<std::uint64_t>(cols), rows),
        "cublasLtMatrixLayoutCreate");
  MatrixLayout layout(raw);
  if (batch == 1) return layout;
  const std::int32_t count = batch;
  const std::int64_t stride = rows * cols;
  check(cublasLtMatrixLayoutSetAttribute(raw, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                         sizeof(count)),
        "cublasLtMatrixLayoutSetAttribute(BATCH_COUNT)");
  check(cublasLtMatrixLayoutSetAttribute(raw, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                         sizeof(stride)),
        "cublasLtMatrixLayoutSetAttribute(STRIDED_BATCH_OFFSET)");
  return layout;
}

template <typename Value>
void set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute, const Value& value,
         const char* name) {
  check(cublasLtMatmulDescSetAttribute(desc, attribute, &value, sizeof(value)), name);
}

}  // namespace

MatmulPreference make_matmul_preference() {
  cublasLtMatmulPreference_t raw = nullptr;
  check(cublasLtMatmulPreferenceCreate(&raw), "cublasLtMatmulPreferenceCreate");
  MatmulPreference preference(raw);
  const auto workspace = static_cast<std::uint64_t>(kMatmulWorkspaceBytes);
  check(cublasLtMatmulPreferenceSetAttribute(raw, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                             &workspace, sizeof(workspace)),
        "cublasLtMatmulPreferenceSetAttribute(MAX_WORKSPACE_BYTES)");
  // Parts of a sum are added in fp32, not in the outputs' type.
  const std::uint32_t reduction = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  check(cublasLtMatmulPreferenceSetAttribute(raw, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                             &reduction, sizeof(reduction)),
        "cublasLtMatmulPreferenceSetAttribute(REDUCTION_SCHEME_MASK)");
  const std::uint32_t alignment = 16;
  for (const auto operand :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    check(cublasLtMatmulPreferenceSetAttribute(raw, operand, &alignment, sizeof(alignment)),
          "cublasLtMatmulPreferenceSetAttribute(MIN_ALIGNMENT)");
  }
  return preference;
}

void check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw RunError(fmt::format("{}: {} (cuBLAS status {})", call, cublasLtGetStatusString(status),
                             static_cast<int>(status)));
}

Buffer& library_workspace(int stream) {
  static std::map<int, Buffer> workspaces;
  Buffer& workspace = workspaces[stream];
  if (workspace.bytes() == 0) workspace = make_device_buffer(kMatmulWorkspaceBytes);
  return workspace;
}

cublasLtHandle_t cublaslt() {
  static const cublasLtHandle_t handle = [] {
    cublasLtHandle_t made = nullptr;
    check(cublasLtCreate(&made), "cublasLtCreate");
    return made;
  }();
  return handle;
}

std::optional<std::string> refuse_narrow_rows(const GemmShape& shape) {
  if (std::max(shape.n, shape.k) > std::numeric_limits<std::int32_t>::max()) {
    return fmt::format("{} x {} does not fit cuBLAS's 32-bit sizes", shape.n, shape.k);
  }
  const std::int64_t multiple = 16 / bytes_of(shape.dtype);
  if (shape.n % multiple == 0 && shape.k % multiple == 0) return std::nullopt;
  return fmt::format("rows of {} and {} elements are not multiples of 16 bytes", shape.k, shape.n);
}

std::int64_t algorithm_rows(std::int64_t rows) {
  for (const std::int64_t bucket : {1, 2, 4, 8, 16, 24, 32, 48, 64}) {
    if (rows <= bucket) return bucket;
  }
  const std::int64_t step = rows <= 512 ? 32 : 128;
  return (rows + step - 1) / step * step;
}

Matmul::Matmul(const Shape& shape) : shape_(shape) {
  cublasLtMatmulDesc_t raw = nullptr;
  check(cublasLtMatmulDescCreate(&raw, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
  desc_ = MatmulDesc(raw);
  set(raw, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T, "cublasLtMatmulDescSetAttribute(TRANSA)");
  if (is_fp8(shape.dtype)) set_fp8_attributes();
}

void Matmul::set_fp8_attributes() {
  const bool by_block = shape_.dtype == DType::fp8_block128;
  // Scales of 128 and fast accumulation exclude each other.
  set(desc_.get(), CUBLASLT_MATMUL_DESC_FAST_ACCUM, static_cast<std::int8_t>(by_block ? 0 : 1),
      "cublasLtMatmulDescSetAttribute(FAST_ACCUM)");
  if (by_block) {
    const std::int32_t weights = CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F,
                       inputs = CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F;
    set(desc_.get(), CUBLASLT_MATMUL_DESC_A_SCALE_MODE, weights,
        "cublasLtMatmulDescSetAttribute(A_SCALE_MODE)");
    set(desc_.get(), CUBLASLT_MATMUL_DESC_B_SCALE_MODE, inputs,
        "cublasLtMatmulDescSetAttribute(B_SCALE_MODE)");
  }
  any_scales_ = make_device_buffer(16);
  const auto* any = static_cast<const float*>(any_scales_.data());
  set_scales(any, any);
}

// The library reads the descriptor during calls only.
void Matmul::set_scales(const float* w_scales, const float* x_scales) const {
  set(desc_.get(), CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, w_scales,
      "cublasLtMatmulDescSetAttribute(A_SCALE_POINTER)");
  set(desc_.get(), CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, x_scales,
      "cublasLtMatmulDescSetAttribute(B_SCALE_POINTER)");
}

Matmul::Plan Matmul::make_plan(std::int64_t rows, int batch) const {
  const cudaDataType_t type = cublas_type(shape_.dtype),
                       y_type = cublas_type(row_dtype(shape_.dtype));
  return {.w = make_layout(type, shape_.k, shape_.n, batch),
          .x = make_layout(type, shape_.k, rows, batch),
          .y = make_layout(y_type, shape_.n, rows, batch)};
}

bool Matmul::find_algorithm(Plan& plan) const {
  const MatmulPreference preference = make_matmul_preference();
  cublasLtMatmulHeuristicResult_t result{};
  int found = 0;
  check(cublasLtMatmulAlgoGetHeuristic(cublaslt(), desc_.get(), plan.w.get(), plan.x.get(),
                                       plan.y.get(), plan.y.get(), preference.get(), 1, &result,
                                       &found),
        "cublasLtMatmulAlgoGetHeuristic");
  plan.algorithm = result.algo;
  return found > 0;
}

bool Matmul::can_use(const Plan& plan) const {
  cublasLtMatmulHeuristicResult_t result{};
  return cublasLtMatmulAlgoCheck(cublaslt(), desc_.get(), plan.w.get(), plan.x.get(), plan.y.get(),
                                 plan.y.get(), &plan.algorithm, &result) == CUBLAS_STATUS_SUCCESS &&
         result.workspaceSize <= static_cast<std::size_t>(kMatmulWorkspaceBytes);
}

// Neighbouring rows share an algorithm where it can do both, so that a sweep does not measure how
// the library changes its mind from row to row.
void Matmul::prepare(std::int64_t rows, int batch) {
  if (rows == 0 || plans_.contains({rows, batch})) return;
  EPS_EXPECT(shape_.dtype != DType::fp8_block128 || (rows % 4 == 0 && batch == 1),
             "scales of 128 with rows that are no multiple of 4, or in a batch");
  Plan plan = make_plan(rows, batch), shared = make_plan(algorithm_rows(rows), batch);
  const bool found = find_algorithm(shared);
  plan.algorithm = shared.algorithm;
  if (!(found && can_use(plan)) && !find_algorithm(plan)) {
    throw RunError(
        fmt::format("cuBLASLt has no algorithm for {} x {} x {}", rows, shape_.n, shape_.k));
  }
  plans_.emplace(Key{rows, batch}, std::move(plan));
}

void Matmul::run(cudaStream_t stream, std::int64_t rows, const Operands& operands,
                 Buffer& workspace, int batch) const {
  const auto plan = plans_.find({rows, batch});
  EPS_EXPECT(plan != plans_.end(), "a matrix product of rows that were not prepared");
  if (is_fp8(shape_.dtype)) set_scales(operands.w_scales, operands.x_scales);
  const float one = 1, zero = 0;
  check(cublasLtMatmul(cublaslt(), desc_.get(), &one, operands.w, plan->second.w.get(), operands.x,
                       plan->second.x.get(), &zero, operands.y, plan->second.y.get(), operands.y,
                       plan->second.y.get(), &plan->second.algorithm, workspace.data(),
                       static_cast<std::size_t>(workspace.bytes()), stream),
        "cublasLtMatmul");
}

}  // namespace epsweep::cuda
