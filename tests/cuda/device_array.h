// Device memory of a test, copied from and to host vectors. Works on a device and on its double.
#pragma once

#include <cstdint>
#include <vector>

#include <cuda_runtime_api.h>

#include "cuda/check.h"

namespace epsweep::cuda {

template <typename T>
class DeviceArray {
 public:
  // Poisoned with 0xff bytes.
  explicit DeviceArray(std::int64_t count) : count_(count) {
    EPS_CUDA(cudaMalloc(&data_, bytes()));
    const std::vector<unsigned char> poison(bytes(), 0xff);
    copy_in(poison.data());
  }
  explicit DeviceArray(const std::vector<T>& host)
      : DeviceArray(static_cast<std::int64_t>(host.size())) {
    copy_in(host.data());
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() { return static_cast<T*>(data_); }
  std::vector<T> host() const {
    std::vector<T> values(static_cast<std::size_t>(count_));
    EPS_CUDA(cudaMemcpy(values.data(), data_, bytes(), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  // Copies from pageable memory return when the host may reuse it; streams of tests do not wait for
  // the rest by themselves.
  void copy_in(const void* from) {
    EPS_CUDA(cudaMemcpy(data_, from, bytes(), cudaMemcpyHostToDevice));
    EPS_CUDA(cudaDeviceSynchronize());
  }
  std::size_t bytes() const { return static_cast<std::size_t>(count_) * sizeof(T); }
  void* data_ = nullptr;
  std::int64_t count_;
};

// A stream of a test.
class TestStream {
 public:
  TestStream() { EPS_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~TestStream() { cudaStreamDestroy(stream_); }
  TestStream(const TestStream&) = delete;
  TestStream& operator=(const TestStream&) = delete;
  operator cudaStream_t() const { return stream_; }
  void synchronize() { EPS_CUDA(cudaStreamSynchronize(stream_)); }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace epsweep::cuda
