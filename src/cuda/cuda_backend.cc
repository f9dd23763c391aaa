// A GPU as a device: streams are lanes, events are marks.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/error.h"
#include "cuda/cuda_lane.h"
#include "cuda/cuda_memory.h"
#include "cuda/cuda_probes.h"
#include "cuda/cuda_token_ops.h"
#include "cuda/device_choice.h"
#include "cuda/element_type_of.h"
#include "cuda/kernels/payload.h"
#include "cuda/matmul.h"
#include "cuda/nccl_comm.h"
#include "cuda/nccl_version.h"
#include "cuda/nvml.h"
#include "device/backend.h"

namespace epsweep::cuda {
namespace {

// 13000 is CUDA 13.0.
std::string cuda_version(int number) {
  return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}

// 130100 is cuBLAS 13.1.0.
std::string cublas_version() {
  const std::size_t number = cublasLtGetVersion();
  return fmt::format("{}.{}.{}", number / 10000, number % 10000 / 100, number % 100);
}

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(const BackendOptions& options)
      : options_(options), device_(choose_device(options)), copies_(make_stream()) {
    if (device_.sharing_ranks > 1) let_ranks_share_a_gpu();
  }

  BackendInfo describe() const override {
    return {.name = "cuda",
            .device = device_.name,
            .device_id = device_.uuid,
            .num_threads = options_.num_threads,
            .memory_bytes = (device_.free_bytes - reserve_bytes()) / device_.sharing_ranks,
            .last_level_cache_bytes = device_.cache_bytes,
            .dtypes = {DType::bf16, DType::fp32, DType::fp8, DType::fp8_block128},
            .launches = {Launch::direct, Launch::graph},
            .libraries = library_versions()};
  }
  std::unique_ptr<Lane> make_lane() override { return std::make_unique<CudaLane>(); }
  std::unique_ptr<Timeline> make_timeline(int num_marks) override {
    return std::make_unique<EventTimeline>(num_marks);
  }
  Buffer make_buffer(std::int64_t bytes) override { return make_device_buffer(bytes); }

  // Through page-locked memory and a stream of its own: the legacy default stream would wait for
  // everything else.
  void copy_to_host(const Buffer& from, void* to, std::int64_t bytes) override {
    EPS_EXPECT(bytes >= 0 && bytes <= from.bytes(), "copy reads past the end of the buffer");
    auto* at = static_cast<std::byte*>(to);
    for_each_part(bytes, [&](std::int64_t begin, std::size_t count) {
      EPS_CUDA(cudaMemcpyAsync(stage_.data(), static_cast<const std::byte*>(from.data()) + begin,
                               count, cudaMemcpyDeviceToHost, copies_.get()));
      EPS_CUDA(cudaStreamSynchronize(copies_.get()));
      std::memcpy(at + begin, stage_.data(), count);
    });
  }
  void copy_from_host(const void* from, Buffer& to, std::int64_t bytes) override {
    EPS_EXPECT(bytes >= 0 && bytes <= to.bytes(), "copy writes past the end of the buffer");
    const auto* at = static_cast<const std::byte*>(from);
    for_each_part(bytes, [&](std::int64_t begin, std::size_t count) {
      std::memcpy(stage_.data(), at + begin, count);
      EPS_CUDA(cudaMemcpyAsync(static_cast<std::byte*>(to.data()) + begin, stage_.data(), count,
                               cudaMemcpyHostToDevice, copies_.get()));
      EPS_CUDA(cudaStreamSynchronize(copies_.get()));
    });
  }
  void enqueue_copy(Lane& lane, const Buffer& from, Buffer& to, std::int64_t bytes) override {
    EPS_EXPECT(bytes >= 0 && bytes <= from.bytes() && bytes <= to.bytes(),
               "copy past the end of a buffer");
    if (bytes == 0) return;
    EPS_CUDA(cudaMemcpyAsync(to.data(), from.data(), static_cast<std::size_t>(bytes),
                             cudaMemcpyDeviceToDevice, stream_of(lane)));
  }
  void fill(Buffer& to, const PayloadStream& stream, std::int64_t begin, std::int64_t count,
            DType dtype) override {
    EPS_EXPECT(count >= 0 && count * bytes_of(dtype) <= to.bytes(),
               "values past the end of the buffer");
    fill_payload(copies_.get(), stream.words, begin, stream.unit, count, element_type_of(dtype),
                 to.data());
    EPS_CUDA(cudaStreamSynchronize(copies_.get()));
  }
  void poison(Buffer& buffer) override {
    if (buffer.bytes() == 0) return;
    EPS_CUDA(cudaMemsetAsync(buffer.data(), 0xff, static_cast<std::size_t>(buffer.bytes()),
                             copies_.get()));
    EPS_CUDA(cudaStreamSynchronize(copies_.get()));
  }
  TokenOps& token_ops() override { return token_ops_; }
  DeviceCondition condition() override { return nvml_.condition(); }
  // The profiler would serialise the kernels that are timed, and most clusters allow it to
  // administrators only.
  WorkCounters counters() override {
    if (options_.counting == WorkCounting::off) return {};
    return {.cycles = {},
            .instructions = {},
            .cache_misses = {},
            .why_not =
                "a GPU's counters are not read while it is timed: profile with ncu, as "
                "launch/gpu_check does"};
  }
  Probes* probes() override { return &probes_; }

 private:
  // What cuBLAS, NCCL and modules that are loaded later take: 2 GiB of a large GPU.
  std::int64_t reserve_bytes() const {
    return std::min(std::int64_t{2} << 30, device_.memory_bytes / 16);
  }

  std::vector<LibraryVersion> library_versions() const {
    return {{"cuda_driver", cuda_version(device_.driver_version)},
            {"cuda_runtime", cuda_version(device_.runtime_version)},
            {"nccl", nccl_version_text(nccl_versions().loaded)},
            {"cublaslt", cublas_version()}};
  }

  static constexpr std::int64_t kStageBytes = 4 << 20;

  template <typename Copy>
  void for_each_part(std::int64_t bytes, const Copy& copy) {
    for (std::int64_t begin = 0; begin < bytes; begin += kStageBytes) {
      copy(begin, static_cast<std::size_t>(std::min(kStageBytes, bytes - begin)));
    }
  }

  BackendOptions options_;
  DeviceFacts device_;
  StreamHandle copies_;
  Buffer stage_ = make_pinned_buffer(kStageBytes);
  CudaTokenOps token_ops_;
  CudaProbes probes_{device_.cache_bytes};
  Nvml nvml_{device_.uuid};
};

const bool registered = BackendCatalog::instance().add(
    {.name = "cuda",
     .summary = "NVIDIA GPUs, one per rank",
     .default_transport = "nccl_sendrecv",
     .default_grouped_gemm = "cublaslt_loop",
     .make = [](const BackendOptions& options) -> std::unique_ptr<Backend> {
       return std::make_unique<CudaBackend>(options);
     }});

}  // namespace
}  // namespace epsweep::cuda
