// What a kind of device offers the pipeline.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/launch.h"
#include "base/payload_stream.h"
#include "base/registry.h"
#include "device/buffer.h"
#include "device/lane.h"
#include "device/probes.h"
#include "device/timeline.h"
#include "device/token_ops.h"

namespace epsweep {

struct LibraryVersion {
  std::string name, version;
};

struct BackendInfo {
  std::string name;
  std::string device;             // model name
  std::string device_id;          // tells the devices of a host apart; empty for the CPU
  int num_threads = 1;            // the rank's share of cores
  std::int64_t memory_bytes = 0;  // this rank may use
  std::int64_t last_level_cache_bytes = 0;
  std::vector<DType> dtypes;
  std::vector<Launch> launches = {Launch::direct};
  std::vector<LibraryVersion> libraries;  // as they are loaded
};

// What a device says about itself at a moment; absent where it does not tell.
struct DeviceCondition {
  std::optional<double> clock_mhz;  // of its SMs or the rank's cores
  std::optional<double> memory_clock_mhz, power_w, temperature_c;
  std::optional<std::vector<std::string>> clock_limits;  // what keeps its clock down; none is good
};

// What the rank's processors did so far, of those that can be asked; see why_not where they cannot.
struct WorkCounters {
  std::optional<std::int64_t> cycles, instructions, cache_misses;
  std::string why_not;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual BackendInfo describe() const = 0;
  virtual std::unique_ptr<Lane> make_lane() = 0;
  virtual std::unique_ptr<Timeline> make_timeline(int num_marks) = 0;
  // Aligned for the device's widest accesses. Throws RunError naming the bytes it could not get.
  virtual Buffer make_buffer(std::int64_t bytes) = 0;
  virtual void copy_to_host(const Buffer& from, void* to, std::int64_t bytes) = 0;
  virtual void copy_from_host(const void* from, Buffer& to, std::int64_t bytes) = 0;
  // The first `bytes` of one of its buffers to another one; enqueues.
  virtual void enqueue_copy(Lane& lane, const Buffer& from, Buffer& to, std::int64_t bytes) = 0;
  // The first `count` elements of `to` become values begin, begin + 1, ... of the stream.
  virtual void fill(Buffer& to, const PayloadStream& stream, std::int64_t begin, std::int64_t count,
                    DType dtype) = 0;
  // Every byte 0xff: a NaN in bf16 and fp32.
  virtual void poison(Buffer& buffer) = 0;
  virtual TokenOps& token_ops() = 0;
  // Takes up to a millisecond.
  virtual DeviceCondition condition() { return {}; }
  virtual WorkCounters counters() { return {}; }
  // Null for a device without ceilings of its own.
  virtual Probes* probes() { return nullptr; }
};

// Whether several ranks may use one device: what they measure then is not what a device does.
enum class DeviceSharing { refuse, allow };

// Whether work is counted by hardware while it runs.
enum class WorkCounting { off, hardware };

struct BackendOptions {
  int num_threads = 1;                 // cores this rank may use
  std::int64_t memory_bytes = 0;       // host memory this rank may use
  int local_rank = 0, local_size = 1;  // among the ranks of its host
  std::optional<int> device;           // its number, where somebody chose one for this rank
  DeviceSharing sharing = DeviceSharing::refuse;
  WorkCounting counting = WorkCounting::off;
};

struct BackendEntry {
  std::string name;
  std::string summary;
  // What an experiment uses that names none.
  std::string default_transport, default_grouped_gemm;
  std::unique_ptr<Backend> (*make)(const BackendOptions& options) = nullptr;
};

using BackendCatalog = Registry<BackendEntry>;

}  // namespace epsweep
