// Memory streams with the rank's threads.
#pragma once

#include <atomic>
#include <optional>

#include "cpu/thread_pool.h"
#include "device/probes.h"

namespace epsweep {

class CpuProbes final : public Probes {
 public:
  explicit CpuProbes(int num_threads) : num_threads_(num_threads) {}

  // Twice the last level cache, and no less than 128 MiB.
  std::int64_t stream_bytes() const override;
  void read(Lane& lane, const Buffer& from, const BufferPart& part) override;
  void copy(Lane& lane, Buffer& buffer, const BufferPart& part, std::int64_t to) override;
  void nothing(Lane&) override {}

  // Of everything read so far: what keeps a compiler from leaving the reading out.
  std::uint64_t checksum() const { return checksum_.load(); }

 private:
  ThreadPool& pool();

  int num_threads_ = 1;
  std::optional<ThreadPool> pool_;  // made when it is first needed
  std::atomic<std::uint64_t> checksum_{0};
};

}  // namespace epsweep
