// CUTLASS's two tiles without CUTLASS: arguments are checked the way the kernel needs them,
// products are computed in fp32 when the stream gets to them.
#include <cstring>
#include <stdexcept>

#include "cuda/optional/cutlass_tile.h"
#include "hostcuda/stream_queue.h"

namespace epsweep::cuda {
namespace {

float element(const void* data, std::int64_t at) {
  const auto bits = static_cast<std::uint32_t>(static_cast<const std::uint16_t*>(data)[at]) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

void put(void* data, std::int64_t at, float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  bits += 0x7fffU + ((bits >> 16) & 1U);
  static_cast<std::uint16_t*>(data)[at] = static_cast<std::uint16_t>(bits >> 16);
}

// TMA reads and writes rows that start at, and are, multiples of 16 bytes.
void check_group(int group, const GroupArrays& at) {
  const std::int32_t* shape = at.shape + 3 * group;
  for (const void* data : {at.w[group], at.x[group], static_cast<const void*>(at.y[group])}) {
    if (data == nullptr || reinterpret_cast<std::uintptr_t>(data) % 16 != 0) {
      throw std::logic_error("CUTLASS: a matrix that is not aligned to 16 bytes");
    }
  }
  if (shape[0] <= 0 || shape[1] <= 0 || shape[2] <= 0) {
    throw std::logic_error("CUTLASS: an empty group");
  }
  if (at.stride_k[group] < shape[2] || at.stride_n[group] < shape[0] ||
      at.stride_k[group] % 8 != 0 || at.stride_n[group] % 8 != 0) {
    throw std::logic_error("CUTLASS: a stride too short or not of 16 bytes");
  }
}

void multiply(int group, const GroupArrays& at) {
  const std::int32_t* shape = at.shape + 3 * group;
  for (std::int64_t row = 0; row < shape[1]; ++row) {
    for (std::int64_t out = 0; out < shape[0]; ++out) {
      float sum = 0;
      for (std::int64_t i = 0; i < shape[2]; ++i) {
        sum += element(at.w[group], out * at.stride_k[group] + i) *
               element(at.x[group], row * at.stride_k[group] + i);
      }
      put(at.y[group], row * at.stride_n[group] + out, sum);
    }
  }
}

// Three descriptors of 128 bytes for each multiprocessor.
std::int64_t workspace_bytes(int num_multiprocessors) {
  return 3LL * 128 * num_multiprocessors;
}

const char* run(cudaStream_t stream, int num_groups, const GroupArrays& groups,
                const CutlassRoom& room) {
  if (num_groups < 1 || room.num_multiprocessors < 1) return "nothing to do, or nowhere";
  if (room.workspace == nullptr || reinterpret_cast<std::uintptr_t>(room.workspace) % 128 != 0) {
    return "no workspace, or one that is not aligned";
  }
  hostcuda::enqueue(stream, [num_groups, groups, room] {
    std::memset(room.workspace, 0x5a,
                static_cast<std::size_t>(workspace_bytes(room.num_multiprocessors)));
    for (int group = 0; group < num_groups; ++group) {
      check_group(group, groups);
      multiply(group, groups);
    }
    return hostcuda::Progress::done;
  });
  return nullptr;
}

constexpr CutlassTile kFewRows{64, 16, workspace_bytes, run};
constexpr CutlassTile kManyRows{128, 128, workspace_bytes, run};

}  // namespace

const CutlassTile* cutlass_few_rows() {
  return &kFewRows;
}
const CutlassTile* cutlass_many_rows() {
  return &kManyRows;
}

}  // namespace epsweep::cuda
