// What a layer's stages look up about the routing, where the device has its data.
#pragma once

#include <vector>

#include "device/backend.h"
#include "pipeline/rank_work.h"

namespace epsweep {

struct LayerIndices {
  Buffer prescribed;       // int32 [own tokens][top_k], the trace's choice
  Buffer first_of_expert;  // int32 [num_experts + 1], into slots_by_expert
  Buffer slots_by_expert;  // int32 [num_slots]
};

// Of every routing.
std::vector<LayerIndices> make_layer_indices(const RankWork& work, Backend& backend);

// Row numbers that the host decides on and the device reads.
class HostIndex {
 public:
  HostIndex() = default;
  HostIndex(std::int64_t most, Backend& backend);

  std::vector<std::int32_t> host;
  // The first `count` of them, copied to the device.
  RowIndex upload(std::int64_t count, Backend& backend);
  const Buffer& device() const { return device_; }
  Buffer take_device() { return std::move(device_); }

 private:
  Buffer device_;
};

}  // namespace epsweep
