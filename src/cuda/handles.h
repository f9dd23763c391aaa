// CUDA's and cuBLASLt's handles, each with one owner.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include "base/unique_handle.h"
#include "cuda/check.h"

namespace epsweep::cuda {

struct StreamTraits {
  using value_type = cudaStream_t;
  static value_type null() { return nullptr; }
  static void destroy(value_type stream) noexcept { cudaStreamDestroy(stream); }
};
using StreamHandle = UniqueHandle<StreamTraits>;

struct EventTraits {
  using value_type = cudaEvent_t;
  static value_type null() { return nullptr; }
  static void destroy(value_type event) noexcept { cudaEventDestroy(event); }
};
using EventHandle = UniqueHandle<EventTraits>;

struct GraphTraits {
  using value_type = cudaGraph_t;
  static value_type null() { return nullptr; }
  static void destroy(value_type graph) noexcept { cudaGraphDestroy(graph); }
};
using GraphHandle = UniqueHandle<GraphTraits>;

struct GraphExecTraits {
  using value_type = cudaGraphExec_t;
  static value_type null() { return nullptr; }
  static void destroy(value_type graph) noexcept { cudaGraphExecDestroy(graph); }
};
using GraphExecHandle = UniqueHandle<GraphExecTraits>;

// Streams do not wait for the legacy default stream.
StreamHandle make_stream();
// Events that carry no time cost less; they are for waits only.
EventHandle make_timed_event();
EventHandle make_wait_event();

struct MatmulDescTraits {
  using value_type = cublasLtMatmulDesc_t;
  static value_type null() { return nullptr; }
  static void destroy(value_type desc) noexcept { cublasLtMatmulDescDestroy(desc); }
};
using MatmulDesc = UniqueHandle<MatmulDescTraits>;

struct MatrixLayoutTraits {
  using value_type = cublasLtMatrixLayout_t;
  static value_type null() { return nullptr; }
  static void destroy(value_type layout) noexcept { cublasLtMatrixLayoutDestroy(layout); }
};
using MatrixLayout = UniqueHandle<MatrixLayoutTraits>;

struct MatmulPreferenceTraits {
  using value_type = cublasLtMatmulPreference_t;
  static value_type null() { return nullptr; }
  static void destroy(value_type preference) noexcept {
    cublasLtMatmulPreferenceDestroy(preference);
  }
};
using MatmulPreference = UniqueHandle<MatmulPreferenceTraits>;

}  // namespace epsweep::cuda
