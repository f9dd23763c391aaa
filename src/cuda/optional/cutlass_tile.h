// CUTLASS's grouped matrix product behind plain functions. A build without CUTLASS has them too,
// and they say so. C++17.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "cuda/kernels/groups.h"

namespace epsweep::cuda {

// What a call works in. Device memory of the tile's workspace_bytes(num_multiprocessors), aligned
// to 128 bytes; calls that may run at the same time want one each.
struct CutlassRoom {
  int num_multiprocessors = 0;
  void* workspace = nullptr;
};

// One compiled kernel for sm_90a: y^T = w * x^T in bf16, summed in fp32. Outputs are the rows of
// its tiles and tokens the columns, so that a few tokens do not leave most of a tensor-core
// instruction (64 rows at least) without work.
struct CutlassTile {
  int outputs = 0, tokens = 0;
  std::int64_t (*workspace_bytes)(int num_multiprocessors) = nullptr;
  // Enqueues one kernel on the device's multiprocessors, which reads the groups when the stream
  // gets there; num_groups >= 1. Null, or what CUTLASS says it cannot do.
  const char* (*run)(cudaStream_t stream, int num_groups, const GroupArrays& groups,
                     const CutlassRoom& room) = nullptr;
};

// 64 outputs x 16 tokens. Null without CUTLASS.
const CutlassTile* cutlass_few_rows();
// 128 outputs x 128 tokens. Null without CUTLASS.
const CutlassTile* cutlass_many_rows();

}  // namespace epsweep::cuda
