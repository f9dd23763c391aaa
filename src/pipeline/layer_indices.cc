#include "pipeline/layer_indices.h"

namespace epsweep {
namespace {

Buffer copy_of(const std::vector<std::int32_t>& values, Backend& backend) {
  const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(std::int32_t));
  Buffer buffer = backend.make_buffer(bytes);
  backend.copy_from_host(values.data(), buffer, bytes);
  return buffer;
}

}  // namespace

std::vector<LayerIndices> make_layer_indices(const RankWork& work, Backend& backend) {
  std::vector<LayerIndices> layers;
  for (std::size_t layer = 0; layer < work.dispatch.size(); ++layer) {
    const Placement& placement = work.placements[layer];
    layers.push_back({.prescribed = copy_of(work.dispatch[layer].expert_of_assignment, backend),
                      .first_of_expert = copy_of(placement.first_of_expert, backend),
                      .slots_by_expert = copy_of(placement.slots_by_expert, backend)});
  }
  return layers;
}

HostIndex::HostIndex(std::int64_t most, Backend& backend)
    : host(static_cast<std::size_t>(most)),
      device_(backend.make_buffer(most * static_cast<std::int64_t>(sizeof(std::int32_t)))) {}

RowIndex HostIndex::upload(std::int64_t count, Backend& backend) {
  backend.copy_from_host(host.data(), device_,
                         count * static_cast<std::int64_t>(sizeof(std::int32_t)));
  return {.buffer = &device_, .count = count};
}

}  // namespace epsweep
