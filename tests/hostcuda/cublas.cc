// The cuBLAS calls that src/cuda makes: arguments are checked the way the library does, products
// are computed in fp32 when the stream gets to them.
#include <cstdint>
#include <stdexcept>
#include <vector>

#include <cublas_v2.h>

#include "hostcuda/device_memory.h"
#include "hostcuda/matrices.h"
#include "hostcuda/stream_queue.h"

using hostcuda::aligned;
using hostcuda::Desc;
using hostcuda::Dims;
using hostcuda::Layout;
using hostcuda::multiply;

namespace {

struct Blas {
  cudaStream_t stream = nullptr;
  void* workspace = nullptr;
};

// Arrays of pointers are read by the device. Without a workspace of the caller's the library would
// allocate one.
bool has_batch_memory(cublasHandle_t handle, std::size_t count, const void* const a[],
                      const void* const b[], void* const c[]) {
  const std::size_t bytes = count * sizeof(void*);
  return reinterpret_cast<Blas*>(handle)->workspace != nullptr && hostcuda::on_device(a, bytes) &&
         hostcuda::on_device(b, bytes) && hostcuda::on_device(c, bytes);
}

// What a kernel that follows a pointer would be punished for: bf16 wants 16 bytes of alignment.
void check_operand(const Layout& layout, const void* data) {
  const std::int64_t element = layout.type == CUDA_R_32F ? 4 : 2;
  const std::int64_t bytes = ((layout.cols - 1) * layout.stride + layout.rows) * element;
  if (!aligned(data)) throw std::logic_error("a batch's matrix is not aligned");
  if (!hostcuda::on_device(data, static_cast<std::size_t>(bytes))) {
    throw std::logic_error("a batch's matrix is not in one piece of device memory");
  }
}

}  // namespace

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  static Blas blas;
  *handle = reinterpret_cast<cublasHandle_t>(&blas);
  return CUBLAS_STATUS_SUCCESS;
}
// Puts the library's own workspace back.
cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t mode) {
  return mode == static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH |
                                           CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)
             ? CUBLAS_STATUS_SUCCESS
             : CUBLAS_STATUS_NOT_SUPPORTED;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  *reinterpret_cast<Blas*>(handle) = {stream, nullptr};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, std::size_t bytes) {
  if (reinterpret_cast<std::uintptr_t>(workspace) % 256 != 0 ||
      !hostcuda::on_device(workspace, bytes)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  reinterpret_cast<Blas*>(handle)->workspace = workspace;
  return CUBLAS_STATUS_SUCCESS;
}

// Shapes are read at once, pointers when the stream gets to the call: they are device memory.
cublasStatus_t cublasGemmGroupedBatchedEx(cublasHandle_t handle, const cublasOperation_t op_a[],
                                          const cublasOperation_t op_b[], const int m[],
                                          const int n[], const int k[], const void* alpha,
                                          const void* const a[], cudaDataType_t type,
                                          const int lda[], const void* const b[], cudaDataType_t,
                                          const int ldb[], const void* beta, void* const c[],
                                          cudaDataType_t, const int ldc[], int groups,
                                          const int group_size[], cublasComputeType_t) {
  struct Group {
    Desc desc;
    Layout a, b, c;
    Dims dims;
  };
  std::vector<Group> all;
  std::size_t members = 0;
  for (int g = 0; g < groups; ++g) {
    const bool plain = static_cast<const float*>(alpha)[g] == 1 &&
                       static_cast<const float*>(beta)[g] == 0 && group_size[g] == 1;
    if (!plain || op_a[g] != CUBLAS_OP_T || op_b[g] != CUBLAS_OP_N || n[g] <= 0 || lda[g] < k[g] ||
        ldb[g] < k[g] || ldc[g] < m[g]) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    ++members;
    all.push_back({.desc = {.transpose_a = true, .transpose_b = false},
                   .a = {type, k[g], m[g], lda[g]},
                   .b = {type, k[g], n[g], ldb[g]},
                   .c = {type, m[g], n[g], ldc[g]},
                   .dims = {m[g], n[g], k[g]}});
  }
  if (!has_batch_memory(handle, members, a, b, c)) return CUBLAS_STATUS_INVALID_VALUE;
  hostcuda::enqueue(reinterpret_cast<Blas*>(handle)->stream, [all, a, b, c] {
    for (std::size_t g = 0; g < all.size(); ++g) {
      check_operand(all[g].a, a[g]);
      check_operand(all[g].b, b[g]);
      check_operand(all[g].c, c[g]);
      multiply(all[g].desc, all[g].a, all[g].b, all[g].c, all[g].dims, a[g], b[g], c[g]);
    }
    return hostcuda::Progress::done;
  });
  return CUBLAS_STATUS_SUCCESS;
}

// Of the types that cuBLAS lists, those of src/cuda.
cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t op_a,
                                   cublasOperation_t op_b, int m, int n, int k, const void* alpha,
                                   const void* const a[], cudaDataType a_type, int lda,
                                   const void* const b[], cudaDataType b_type, int ldb,
                                   const void* beta, void* const c[], cudaDataType c_type, int ldc,
                                   int batch, cublasComputeType_t compute, cublasGemmAlgo_t) {
  if (m <= 0 || n <= 0 || k <= 0 || batch <= 0 || lda < k || ldb < k || ldc < m) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const bool plain =
      *static_cast<const float*>(alpha) == 1 && *static_cast<const float*>(beta) == 0;
  if (!plain || op_a != CUBLAS_OP_T || op_b != CUBLAS_OP_N || compute != CUBLAS_COMPUTE_32F ||
      a_type != b_type || a_type != c_type || (a_type != CUDA_R_16BF && a_type != CUDA_R_32F)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  const auto count = static_cast<std::size_t>(batch);
  if (!has_batch_memory(handle, count, a, b, c)) return CUBLAS_STATUS_INVALID_VALUE;
  const Desc desc{.transpose_a = true, .transpose_b = false};
  const Layout la{a_type, k, m, lda}, lb{b_type, k, n, ldb}, lc{c_type, m, n, ldc};
  const Dims dims{m, n, k};
  hostcuda::enqueue(reinterpret_cast<Blas*>(handle)->stream, [=] {
    for (std::size_t i = 0; i < count; ++i) {
      check_operand(la, a[i]);
      check_operand(lb, b[i]);
      check_operand(lc, c[i]);
      multiply(desc, la, lb, lc, dims, a[i], b[i], c[i]);
    }
    return hostcuda::Progress::done;
  });
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
