// The cuBLASLt and cuBLAS calls that src/cuda makes: arguments are checked the way the library
// does, products are computed in fp32 when the stream gets to them.
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include <cublasLt.h>
#include <cublas_v2.h>

#include "hostcuda/device.h"
#include "hostcuda/device_memory.h"
#include "hostcuda/stream_queue.h"

namespace {

struct Desc {
  bool transpose_a = false, transpose_b = false;
  std::int32_t pointer_mode = CUBLASLT_POINTER_MODE_HOST;
};
struct Layout {
  cudaDataType_t type;
  std::int64_t rows, cols, stride;  // column-major; stride between columns
  std::int32_t batch = 1;
  std::int64_t batch_stride = 0;
  // Of a grouped layout, whose dimensions are read on the device; else 0.
  int groups = 0;
  const std::int32_t *rows_at = nullptr, *cols_at = nullptr, *leading_at = nullptr;

  Layout of_group(int group) const {
    return {type, rows_at[group], cols_at[group], leading_at[group]};
  }
};
struct Preference {
  std::uint64_t workspace = 0;
  std::int64_t mean_rows = 0, mean_cols = 0, mean_summed = 0;
};

int cublas_version = hostcuda::kCublasVersion;

// What the double writes into an algorithm, to see that the caller passes on what it was given.
constexpr std::uint64_t kAlgorithm = 0x45505357;

float element(const Layout& layout, const void* data, std::int64_t at) {
  if (layout.type == CUDA_R_32F) return static_cast<const float*>(data)[at];
  const auto bits = static_cast<std::uint32_t>(static_cast<const std::uint16_t*>(data)[at]) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

void put(const Layout& layout, void* data, std::int64_t at, float value) {
  if (layout.type == CUDA_R_32F) {
    static_cast<float*>(data)[at] = value;
    return;
  }
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  const bool nan = (bits & 0x7fffffffU) > 0x7f800000U;
  bits = nan ? bits | 0x400000U : bits + 0x7fffU + ((bits >> 16) & 1U);
  static_cast<std::uint16_t*>(data)[at] = static_cast<std::uint16_t>(bits >> 16);
}

bool aligned(const void* data) {
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0;
}

// op(A) is m x k, op(B) k x n, D m x n.
struct Dims {
  std::int64_t m, n, k;
};
bool dims_of(const Desc& desc, const Layout& a, const Layout& b, const Layout& d, Dims& dims) {
  dims.m = desc.transpose_a ? a.cols : a.rows;
  dims.k = desc.transpose_a ? a.rows : a.cols;
  dims.n = desc.transpose_b ? b.rows : b.cols;
  const std::int64_t k_of_b = desc.transpose_b ? b.cols : b.rows;
  return dims.k == k_of_b && d.rows == dims.m && d.cols == dims.n && a.type == b.type &&
         a.batch == b.batch && a.batch == d.batch;
}

void multiply(const Desc& desc, const Layout& a, const Layout& b, const Layout& d, const Dims& dims,
              const void* a_data, const void* b_data, void* d_data) {
  for (std::int64_t batch = 0; batch < a.batch; ++batch) {
    for (std::int64_t col = 0; col < dims.n; ++col) {
      for (std::int64_t row = 0; row < dims.m; ++row) {
        float sum = 0;
        for (std::int64_t i = 0; i < dims.k; ++i) {
          const std::int64_t at_a = desc.transpose_a ? row * a.stride + i : i * a.stride + row;
          const std::int64_t at_b = desc.transpose_b ? i * b.stride + col : col * b.stride + i;
          sum += element(a, a_data, at_a + batch * a.batch_stride) *
                 element(b, b_data, at_b + batch * b.batch_stride);
        }
        put(d, d_data, col * d.stride + row + batch * d.batch_stride, sum);
      }
    }
  }
}

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

struct GroupedCall {
  Desc desc;
  Layout a, b, d;
  const void* const* a_data;
  const void* const* b_data;
  void* const* d_data;
  const float *alpha, *beta;
};

// When the stream gets to it: dimensions, pointers and scales are device memory.
void multiply_groups(const GroupedCall& call) {
  if (*call.alpha != 1 || *call.beta != 0) throw std::logic_error("cuBLASLt grouped: scales");
  for (int g = 0; g < call.a.groups; ++g) {
    const Layout a = call.a.of_group(g), b = call.b.of_group(g), d = call.d.of_group(g);
    Dims dims{};
    if (!dims_of(call.desc, a, b, d, dims)) throw std::logic_error("cuBLASLt grouped: dimensions");
    for (const Layout* layout : {&a, &b, &d}) {
      // 16 bytes for every leading dimension, and no empty group.
      if (layout->rows <= 0 || layout->cols <= 0 || layout->stride < layout->rows ||
          layout->stride % 8 != 0) {
        throw std::logic_error("cuBLASLt grouped: an empty group or a crooked leading dimension");
      }
    }
    if (!aligned(call.a_data[g]) || !aligned(call.b_data[g]) || !aligned(call.d_data[g])) {
      throw std::logic_error("cuBLASLt grouped: a matrix that is not aligned to 16 bytes");
    }
    multiply(call.desc, a, b, d, dims, call.a_data[g], call.b_data[g], call.d_data[g]);
  }
}

}  // namespace

namespace hostcuda {

void set_cublas_version(int version) {
  cublas_version = version;
}

}  // namespace hostcuda

extern "C" {

const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "success" : "refused by the host double";
}
std::size_t cublasLtGetVersion() {
  return static_cast<std::size_t>(cublas_version);
}
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  static int only;
  *handle = reinterpret_cast<cublasLtHandle_t>(&only);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  if (compute != CUBLAS_COMPUTE_32F || scale != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  *desc = reinterpret_cast<cublasLtMatmulDesc_t>(new Desc);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  delete reinterpret_cast<Desc*>(desc);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t bytes) {
  if (bytes != sizeof(cublasOperation_t)) return CUBLAS_STATUS_INVALID_VALUE;
  if (attribute == CUBLASLT_MATMUL_DESC_POINTER_MODE) {
    std::memcpy(&reinterpret_cast<Desc*>(desc)->pointer_mode, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  }
  const bool transposed = *static_cast<const cublasOperation_t*>(value) == CUBLAS_OP_T;
  if (attribute == CUBLASLT_MATMUL_DESC_TRANSA) {
    reinterpret_cast<Desc*>(desc)->transpose_a = transposed;
  } else if (attribute == CUBLASLT_MATMUL_DESC_TRANSB) {
    reinterpret_cast<Desc*>(desc)->transpose_b = transposed;
  } else {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t cols, std::int64_t ld) {
  if (rows == 0 || cols == 0 || ld < static_cast<std::int64_t>(rows)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  *layout = reinterpret_cast<cublasLtMatrixLayout_t>(
      new Layout{type, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(cols), ld, 1, 0});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtGroupedMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                                 int groups, const void* rows, const void* cols,
                                                 const void* leading) {
  if (groups <= 0 || rows == nullptr || cols == nullptr || leading == nullptr) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  Layout made{type, 0, 0, 0};
  made.groups = groups;
  made.rows_at = static_cast<const std::int32_t*>(rows);
  made.cols_at = static_cast<const std::int32_t*>(cols);
  made.leading_at = static_cast<const std::int32_t*>(leading);
  *layout = reinterpret_cast<cublasLtMatrixLayout_t>(new Layout(made));
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete reinterpret_cast<Layout*>(layout);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* value, std::size_t bytes) {
  auto& own = *reinterpret_cast<Layout*>(layout);
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT && bytes == sizeof(own.batch)) {
    std::memcpy(&own.batch, value, bytes);
  } else if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET &&
             bytes == sizeof(own.batch_stride)) {
    std::memcpy(&own.batch_stride, value, bytes);
  } else {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete reinterpret_cast<Preference*>(preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, std::size_t bytes) {
  auto& own = *reinterpret_cast<Preference*>(preference);
  std::int64_t* mean = nullptr;
  if (attribute == CUBLASLT_MATMUL_PREF_GROUPED_DESC_D_AVERAGE_ROWS) mean = &own.mean_rows;
  if (attribute == CUBLASLT_MATMUL_PREF_GROUPED_DESC_D_AVERAGE_COLS) mean = &own.mean_cols;
  if (attribute == CUBLASLT_MATMUL_PREF_GROUPED_AVERAGE_REDUCTION_DIM) mean = &own.mean_summed;
  if (mean != nullptr) {
    // As cuBLAS 13.10.0 does, whatever its header says.
    if (bytes != sizeof(*mean)) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(mean, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  }
  if (attribute != CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) return CUBLAS_STATUS_SUCCESS;
  std::memcpy(&own.workspace, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* found) {
  const Layout &la = *reinterpret_cast<Layout*>(a), &lb = *reinterpret_cast<Layout*>(b),
               &ld = *reinterpret_cast<Layout*>(d);
  if (la.groups > 0) {
    // Without the means a real library chooses blindly.
    const auto& own = *reinterpret_cast<Preference*>(preference);
    if (la.groups != lb.groups || la.groups != ld.groups || own.mean_rows <= 0 ||
        own.mean_cols <= 0 || own.mean_summed <= 0) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
  } else if (Dims dims{}; !dims_of(*reinterpret_cast<Desc*>(desc), la, lb, ld, dims)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  *found = wanted > 0 ? 1 : 0;
  results[0] = {};
  std::memcpy(&results[0].algo, &kAlgorithm, sizeof(kAlgorithm));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace, std::size_t,
                              cudaStream_t stream) {
  std::uint64_t mark = 0;
  std::memcpy(&mark, algorithm, sizeof(mark));
  if (mark != kAlgorithm || workspace == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (reinterpret_cast<Layout*>(a_layout)->groups > 0) {
    const GroupedCall call{
        *reinterpret_cast<Desc*>(desc),       *reinterpret_cast<Layout*>(a_layout),
        *reinterpret_cast<Layout*>(b_layout), *reinterpret_cast<Layout*>(d_layout),
        static_cast<const void* const*>(a),   static_cast<const void* const*>(b),
        static_cast<void* const*>(d),         static_cast<const float*>(alpha),
        static_cast<const float*>(beta)};
    // Scales of the host are allowed, and wrong on Hopper from cuBLAS 13.4 to 13.7.
    if (call.desc.pointer_mode != CUBLASLT_POINTER_MODE_DEVICE || c != d || c_layout != d_layout ||
        !aligned(a) || !aligned(b) || !aligned(d) || call.a.groups != call.b.groups ||
        call.a.groups != call.d.groups) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    hostcuda::enqueue(stream, [call] {
      multiply_groups(call);
      return hostcuda::Progress::done;
    });
    return CUBLAS_STATUS_SUCCESS;
  }
  const bool plain =
      *static_cast<const float*>(alpha) == 1 && *static_cast<const float*>(beta) == 0;
  if (!plain || c != d || !aligned(a) || !aligned(b) || !aligned(d)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  const Desc own = *reinterpret_cast<Desc*>(desc);
  const Layout la = *reinterpret_cast<Layout*>(a_layout), lb = *reinterpret_cast<Layout*>(b_layout),
               ld = *reinterpret_cast<Layout*>(d_layout);
  Dims dims{};
  if (!dims_of(own, la, lb, ld, dims)) return CUBLAS_STATUS_INVALID_VALUE;
  hostcuda::enqueue(stream, [=] {
    multiply(own, la, lb, ld, dims, a, b, d);
    return hostcuda::Progress::done;
  });
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  static Blas blas;
  *handle = reinterpret_cast<cublasHandle_t>(&blas);
  return CUBLAS_STATUS_SUCCESS;
}
// Puts the library's own workspace back.
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
