// The double of cuBLAS's batches must notice what the library or a device would punish.
#include <stdexcept>

#include <cublas_v2.h>
#include <gtest/gtest.h>

#include "cuda/cublas_handle.h"
#include "cuda/cuda_memory.h"
#include "cuda/handles.h"
#include "cuda/matmul.h"
#include "hostcuda/device_memory.h"
#include "hostcuda/stream_queue.h"

namespace epsweep::cuda {
namespace {

constexpr int kN = 8, kRows = 4, kK = 16;

// Two products of one matrix; what a test changes is what is wrong with them.
struct Batch {
  StreamHandle stream = make_stream();
  Buffer workspace = make_device_buffer(kMatmulWorkspaceBytes);
  Buffer w = make_device_buffer(kN * kK * 2), x = make_device_buffer(kRows * kK * 2 + 2),
         y = make_device_buffer(kRows * kN * 2);
  Buffer arrays = make_device_buffer(6 * 8);
  void** pointers = static_cast<void**>(arrays.data());
  int ldw = kK, ldy = kN;
  cudaDataType type = CUDA_R_16BF, y_type = CUDA_R_16BF;

  Batch() { fill(arrays); }
  void fill(Buffer& to) {
    for (int i = 0; i < 2; ++i) {
      to.as<void*>()[static_cast<std::size_t>(i)] = w.data();
      to.as<void*>()[static_cast<std::size_t>(2 + i)] = x.data();
      to.as<void*>()[static_cast<std::size_t>(4 + i)] = y.data();
    }
  }
  cublasStatus_t multiply() {
    const float one = 1, zero = 0;
    const cublasStatus_t status = cublasGemmBatchedEx(
        cublas(), CUBLAS_OP_T, CUBLAS_OP_N, kN, kRows, kK, &one, pointers, type, ldw, pointers + 2,
        type, kK, &zero, pointers + 4, y_type, ldy, 2, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    hostcuda::drain(stream.get());
    return status;
  }
  cublasStatus_t multiply_on_stream() {
    cublas_on(stream.get(), workspace);
    return multiply();
  }
};

TEST(CublasDouble, takes_a_batch_that_is_right) {
  EXPECT_EQ(Batch().multiply_on_stream(), CUBLAS_STATUS_SUCCESS);
}

TEST(CublasDouble, wants_pointer_arrays_on_the_device) {
  Batch batch;
  Buffer pinned = make_pinned_buffer(6 * 8);
  batch.fill(pinned);
  batch.pointers = static_cast<void**>(pinned.data());
  EXPECT_EQ(batch.multiply_on_stream(), CUBLAS_STATUS_INVALID_VALUE);
  batch.pointers = static_cast<void**>(batch.arrays.data()) + 1;  // one array reaches over the end
  EXPECT_EQ(batch.multiply_on_stream(), CUBLAS_STATUS_INVALID_VALUE);
}

TEST(CublasDouble, wants_matrices_on_the_device_and_aligned) {
  Batch misaligned;
  misaligned.arrays.as<void*>()[3] = static_cast<char*>(misaligned.x.data()) + 2;
  EXPECT_THROW(misaligned.multiply_on_stream(), std::logic_error);
  Batch outside;
  outside.arrays.as<void*>()[3] = static_cast<char*>(outside.x.data()) + 16;
  EXPECT_THROW(outside.multiply_on_stream(), std::logic_error);
  Batch host;
  Buffer pinned = make_pinned_buffer(kRows * kK * 2);
  host.arrays.as<void*>()[2] = pinned.data();
  EXPECT_THROW(host.multiply_on_stream(), std::logic_error);
}

TEST(CublasDouble, wants_leading_dimensions_and_types_that_fit) {
  Batch short_w;
  short_w.ldw = kK - 1;
  EXPECT_EQ(short_w.multiply_on_stream(), CUBLAS_STATUS_INVALID_VALUE);
  Batch short_y;
  short_y.ldy = kN - 1;
  EXPECT_EQ(short_y.multiply_on_stream(), CUBLAS_STATUS_INVALID_VALUE);
  Batch mixed;
  mixed.y_type = CUDA_R_32F;
  EXPECT_EQ(mixed.multiply_on_stream(), CUBLAS_STATUS_NOT_SUPPORTED);
}

// The library would allocate its own.
TEST(CublasDouble, wants_a_workspace_after_every_change_of_stream) {
  Batch batch;
  cublas_on(batch.stream.get(), batch.workspace);
  cublasSetStream(cublas(), batch.stream.get());
  EXPECT_EQ(batch.multiply(), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_NE(cublasSetWorkspace(cublas(), static_cast<char*>(batch.workspace.data()) + 16, 64),
            CUBLAS_STATUS_SUCCESS);
}

TEST(CublasDouble, knows_where_device_memory_ends) {
  Buffer device = make_device_buffer(8);
  EXPECT_TRUE(hostcuda::on_device(device.data(), 8));
  EXPECT_TRUE(hostcuda::on_device(static_cast<char*>(device.data()) + 4, 4));
  EXPECT_FALSE(hostcuda::on_device(static_cast<char*>(device.data()) + 4, 5));
  const int local = 0;
  EXPECT_FALSE(hostcuda::on_device(&local, 4));
}

}  // namespace
}  // namespace epsweep::cuda
