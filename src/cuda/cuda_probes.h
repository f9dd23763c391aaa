// Memory streams and an empty kernel on a GPU.
#pragma once

#include <cstdint>

#include "cuda/cuda_memory.h"
#include "device/probes.h"

namespace epsweep::cuda {

class CudaProbes final : public Probes {
 public:
  explicit CudaProbes(std::int64_t cache_bytes) : cache_bytes_(cache_bytes) {}

  std::int64_t stream_bytes() const override;
  void read(Lane& lane, const Buffer& from, const BufferPart& part) override;
  // The driver's own copy inside the device's memory.
  void copy(Lane& lane, Buffer& buffer, const BufferPart& part, std::int64_t to) override;
  void nothing(Lane& lane) override;

  // uint32 [kReadStreamWords]: what read_stream() left of the last read, zeros behind it; without
  // bytes before the first.
  const Buffer& words() const { return words_; }

 private:
  std::int64_t cache_bytes_ = 0;
  Buffer words_;
};

}  // namespace epsweep::cuda
