// The cuBLASLt calls that src/cuda makes: arguments are checked the way the library does, products
// are computed in fp32 when the stream gets to them.
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include "hostcuda/device.h"
#include "hostcuda/device_memory.h"
#include "hostcuda/matrices.h"
#include "hostcuda/stream_queue.h"

using hostcuda::aligned;
using hostcuda::Desc;
using hostcuda::Dims;
using hostcuda::dims_of;
using hostcuda::Layout;
using hostcuda::multiply;

namespace {

struct Preference {
  std::uint64_t workspace = 0;
  std::int64_t mean_rows = 0, mean_cols = 0, mean_summed = 0;
};

int cublas_version = hostcuda::kCublasVersion;

// What the double writes into an algorithm, to see that the caller passes on what it was given.
constexpr std::uint64_t kAlgorithm = 0x45505357;

int device_capability() {
  int major = 0, minor = 0;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0);
  return 10 * major + minor;
}

bool has_block_scales(const Desc& desc) {
  return !desc.a_scale.is_one() || !desc.b_scale.is_one();
}

// Modes that go together, and what cuBLAS's documentation asks for with scales of 128: the device,
// the release, sizes in multiples of 4, addresses in multiples of 16 bytes. PyTorch knows of no
// fast accumulation with them, and nobody of batches.
bool block_scales_fit(const Desc& desc, const Dims& dims, int batch) {
  const auto is = [](const hostcuda::Scale& scale, cublasLtMatmulMatrixScale_t mode) {
    return scale.mode == mode;
  };
  constexpr auto kVector = CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F;
  constexpr auto kSquare = CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F;
  const bool pair = (is(desc.a_scale, kVector) && is(desc.b_scale, kVector)) ||
                    (is(desc.a_scale, kVector) && is(desc.b_scale, kSquare)) ||
                    (is(desc.a_scale, kSquare) && is(desc.b_scale, kVector));
  return pair && device_capability() == 90 && cublas_version >= 120900 && dims.m % 4 == 0 &&
         dims.n % 4 == 0 && desc.fast_accumulation == 0 && batch == 1 &&
         desc.a_scale.at != nullptr && desc.b_scale.at != nullptr && aligned(desc.a_scale.at) &&
         aligned(desc.b_scale.at);
}

// What the library says to e4m3 before anything runs; other types have no scales.
cublasStatus_t check_types(const Desc& desc, const Layout& a, const Layout& b, const Layout& c,
                           const Layout& d, const Dims& dims) {
  if (a.type != CUDA_R_8F_E4M3) {
    const bool plain = !has_block_scales(desc) && desc.a_scale.at == nullptr &&
                       desc.b_scale.at == nullptr && d.type == a.type;
    return plain ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
  }
  // Rows of all three are multiples of 16 bytes; columns are free.
  const bool fits = device_capability() >= 89 && b.type == a.type && d.type == CUDA_R_16BF &&
                    c.type == CUDA_R_16BF && desc.transpose_a && !desc.transpose_b &&
                    a.stride % 16 == 0 && b.stride % 16 == 0 && d.stride % 8 == 0 &&
                    dims.k % 16 == 0 && dims.m % 8 == 0;
  const bool scales = !has_block_scales(desc) || block_scales_fit(desc, dims, a.batch);
  return fits && scales ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

// When the stream gets to it: scales are device memory, enough of it.
void check_scales(const Desc& desc, const Layout& a, const Dims& dims) {
  if (a.type != CUDA_R_8F_E4M3) return;
  const auto check = [&](const hostcuda::Scale& scale, std::int64_t outer) {
    const auto bytes = static_cast<std::size_t>(scale.count(outer, dims.k)) * sizeof(float);
    if (scale.at != nullptr && !hostcuda::on_device(scale.at, bytes)) {
      throw std::logic_error("cuBLASLt: scales that are not in one piece of device memory");
    }
  };
  check(desc.a_scale, dims.m);
  check(desc.b_scale, dims.n);
}

// A value of the caller's, of that size.
template <typename Value>
cublasStatus_t put(Value& to, const void* value, std::size_t bytes) {
  if (bytes != sizeof(Value)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&to, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t put_transposed(bool& to, const void* value, std::size_t bytes) {
  cublasOperation_t operation = CUBLAS_OP_N;
  const cublasStatus_t status = put(operation, value, bytes);
  to = operation == CUBLAS_OP_T;
  return status;
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
  Desc& own = *reinterpret_cast<Desc*>(desc);
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_POINTER_MODE:
      return put(own.pointer_mode, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return put_transposed(own.transpose_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return put_transposed(own.transpose_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_FAST_ACCUM:
      return put(own.fast_accumulation, value, bytes);
    case CUBLASLT_MATMUL_DESC_A_SCALE_MODE:
      return put(own.a_scale.mode, value, bytes);
    case CUBLASLT_MATMUL_DESC_B_SCALE_MODE:
      return put(own.b_scale.mode, value, bytes);
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
      return put(own.a_scale.at, value, bytes);
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
      return put(own.b_scale.at, value, bytes);
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
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
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
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
  } else {
    const Desc& own = *reinterpret_cast<Desc*>(desc);
    Dims dims{};
    if (!dims_of(own, la, lb, ld, dims)) return CUBLAS_STATUS_INVALID_VALUE;
    const Layout& lc = *reinterpret_cast<Layout*>(c);
    if (const auto status = check_types(own, la, lb, lc, ld, dims);
        status != CUBLAS_STATUS_SUCCESS) {
      return status;
    }
  }
  *found = wanted > 0 ? 1 : 0;
  results[0] = {};
  std::memcpy(&results[0].algo, &kAlgorithm, sizeof(kAlgorithm));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t desc,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t* algorithm,
                                       cublasLtMatmulHeuristicResult_t* result) {
  std::uint64_t mark = 0;
  std::memcpy(&mark, algorithm, sizeof(mark));
  const Desc& own = *reinterpret_cast<Desc*>(desc);
  const Layout &la = *reinterpret_cast<Layout*>(a), &lb = *reinterpret_cast<Layout*>(b),
               &ld = *reinterpret_cast<Layout*>(d);
  Dims dims{};
  *result = {};
  if (mark != kAlgorithm || !dims_of(own, la, lb, ld, dims)) return CUBLAS_STATUS_INVALID_VALUE;
  return check_types(own, la, lb, *reinterpret_cast<Layout*>(c), ld, dims);
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
  if (const auto status = check_types(own, la, lb, ld, ld, dims); status != CUBLAS_STATUS_SUCCESS) {
    return status;
  }
  hostcuda::enqueue(stream, [=] {
    check_scales(own, la, dims);
    multiply(own, la, lb, ld, dims, a, b, d);
    return hostcuda::Progress::done;
  });
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
