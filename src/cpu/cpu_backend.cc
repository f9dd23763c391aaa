#include "cpu/cpu_backend.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <fmt/format.h>
#include <sys/mman.h>

#include "base/error.h"
#include "base/host_probe.h"
#include "cpu/core_condition.h"
#include "cpu/cpu_probes.h"
#include "cpu/cpu_token_ops.h"
#include "cpu/perf_counters.h"

namespace epsweep {
namespace {

constexpr std::int64_t kCacheLine = 64;
constexpr std::int64_t kHugePage = std::int64_t{2} << 20;
// A buffer in small pages costs a walk through page tables that the sweep over cold weights has
// thrown out of the caches, some microseconds a page in a virtual machine: with 64 tokens and 2
// threads permute took 1,040 us and takes 210, dispatch 1,160 and 280.
constexpr std::int64_t kHugeFrom = std::int64_t{256} << 10;
constexpr std::int64_t kAddressSpace = std::int64_t{1} << 47;

// Work is done when the call returns, so there is never anything to wait for.
class InlineLane final : public Lane {
 public:
  void synchronize() override {}
};

class ClockTimeline final : public Timeline {
 public:
  explicit ClockTimeline(int num_marks)
      : wall_s_(static_cast<std::size_t>(num_marks)), cpu_s_(static_cast<std::size_t>(num_marks)) {}

  void mark(Lane&, MarkId id) override {
    wall_s_[index(id)] = monotonic_s();
    cpu_s_[index(id)] = process_cpu_s();
  }
  // One thread runs everything in order: whatever was marked has been passed.
  void wait(Lane&, MarkId) override {}
  double at(MarkId id) const override { return wall_s_[index(id)]; }
  double cpu_at(MarkId id) const override { return cpu_s_[index(id)]; }

 private:
  static std::size_t index(MarkId id) { return static_cast<std::size_t>(id); }
  std::vector<double> wall_s_, cpu_s_;
};

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(const BackendOptions& options)
      : options_(options),
        counters_(options.counting),
        token_ops_(options.num_threads),
        cores_("/sys/devices/system/cpu", allowed_cores()),
        probes_(options.num_threads) {}

  BackendInfo describe() const override {
    const std::int64_t memory_bytes =
        options_.memory_bytes > 0 ? options_.memory_bytes : memory_total_bytes();
    return {.name = "cpu",
            .device = cpu_model(),
            .num_threads = options_.num_threads,
            .memory_bytes = memory_bytes,
            .last_level_cache_bytes = last_level_cache_bytes(),
            .dtypes = {DType::bf16, DType::fp32}};
  }
  std::unique_ptr<Lane> make_lane() override { return std::make_unique<InlineLane>(); }
  std::unique_ptr<Timeline> make_timeline(int num_marks) override {
    EPS_EXPECT(num_marks >= 0, "a timeline cannot hold a negative number of marks");
    return std::make_unique<ClockTimeline>(num_marks);
  }
  Buffer make_buffer(std::int64_t bytes) override { return make_cpu_buffer(bytes); }
  void copy_to_host(const Buffer& from, void* to, std::int64_t bytes) override {
    EPS_EXPECT(bytes >= 0 && bytes <= from.bytes(), "copy reads past the end of the buffer");
    if (bytes > 0) std::memcpy(to, from.data(), static_cast<std::size_t>(bytes));
  }
  void copy_from_host(const void* from, Buffer& to, std::int64_t bytes) override {
    EPS_EXPECT(bytes >= 0 && bytes <= to.bytes(), "copy writes past the end of the buffer");
    if (bytes > 0) std::memcpy(to.data(), from, static_cast<std::size_t>(bytes));
  }
  void enqueue_copy(Lane& /*lane*/, const Buffer& from, Buffer& to, std::int64_t bytes) override {
    EPS_EXPECT(bytes <= to.bytes(), "copy writes past the end of the buffer");
    copy_to_host(from, to.data(), bytes);
  }
  void fill(Buffer& to, const PayloadStream& stream, std::int64_t begin, std::int64_t count,
            DType dtype) override {
    EPS_EXPECT(count >= 0 && count * bytes_of(dtype) <= to.bytes(),
               "values past the end of the buffer");
    fill_payload(stream, begin, count, dtype, to.data());
  }
  void poison(Buffer& buffer) override {
    if (buffer.bytes() > 0) {
      std::memset(buffer.data(), 0xff, static_cast<std::size_t>(buffer.bytes()));
    }
  }
  TokenOps& token_ops() override { return token_ops_; }
  DeviceCondition condition() override { return cores_.read(); }
  WorkCounters counters() override { return counters_.read(); }
  Probes* probes() override { return &probes_; }

 private:
  BackendOptions options_;
  HardwareCounters counters_;  // before the threads that it counts
  CpuTokenOps token_ops_;
  CoreCondition cores_;
  CpuProbes probes_;
};

const bool registered = BackendCatalog::instance().add({.name = "cpu",
                                                        .summary = "host cores, one share per rank",
                                                        .default_transport = "pairwise",
                                                        .default_grouped_gemm = "amx",
                                                        .make = make_cpu_backend});

}  // namespace

Buffer make_cpu_buffer(std::int64_t bytes) {
  EPS_EXPECT(bytes >= 0, "a buffer cannot have a negative size");
  if (bytes == 0) return Buffer(nullptr, 0, [](void*) {});
  const std::int64_t alignment = bytes >= kHugeFrom ? kHugePage : kCacheLine;
  const std::int64_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* data = nullptr;
  // More than an address space: not worth asking, and sanitizers end the program over it.
  if (bytes <= kAddressSpace) {
    data =
        std::aligned_alloc(static_cast<std::size_t>(alignment), static_cast<std::size_t>(rounded));
  }
  if (data == nullptr) {
    throw RunError(fmt::format("cannot allocate {} bytes ({:.1f} GiB) of host memory", bytes,
                               static_cast<double>(bytes) / 0x1.0p30));
  }
  // A wish, not a need: without huge pages everything works, more slowly. To the end of the last
  // one: a remainder in small pages took ten times as long to pass over as all the rest.
  if (alignment == kHugePage) madvise(data, static_cast<std::size_t>(rounded), MADV_HUGEPAGE);
  return Buffer(data, bytes, [](void* memory) { std::free(memory); });
}

std::unique_ptr<Backend> make_cpu_backend(const BackendOptions& options) {
  EPS_EXPECT(options.num_threads >= 1, "a rank needs at least one thread");
  return std::make_unique<CpuBackend>(options);
}

}  // namespace epsweep
