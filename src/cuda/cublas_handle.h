// cuBLAS's handle; cuBLASLt's is in matmul.h.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include "base/dtype.h"
#include "device/buffer.h"

namespace epsweep::cuda {

// The process's handle; made at first use, lives as long as the process.
cublasHandle_t cublas();

// Sets it to a stream and to memory to work in: cuBLAS would else allocate some by itself.
// `workspace` has kMatmulWorkspaceBytes and belongs to the stream.
cublasHandle_t cublas_on(cudaStream_t stream, Buffer& workspace);

// Of weights.
cudaDataType_t cublas_type(DType dtype);

}  // namespace epsweep::cuda
