#include "cuda/cublas_handle.h"

#include "cuda/matmul.h"

namespace epsweep::cuda {

cublasHandle_t cublas() {
  static const cublasHandle_t handle = [] {
    cublasHandle_t made = nullptr;
    check(cublasCreate(&made), "cublasCreate");
    // Parts of a sum are added in fp32 too.
    constexpr auto kMode = static_cast<cublasMath_t>(
        CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
    check(cublasSetMathMode(made, kMode), "cublasSetMathMode");
    return made;
  }();
  return handle;
}

cublasHandle_t cublas_on(cudaStream_t stream, Buffer& workspace) {
  const cublasHandle_t handle = cublas();
  // In this order: setting the stream puts the library's own memory back.
  check(cublasSetStream(handle, stream), "cublasSetStream");
  check(cublasSetWorkspace(handle, workspace.data(), static_cast<std::size_t>(workspace.bytes())),
        "cublasSetWorkspace");
  return handle;
}

cudaDataType_t cublas_type(DType dtype) {
  if (is_fp8(dtype)) return CUDA_R_8F_E4M3;
  return dtype == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

}  // namespace epsweep::cuda
