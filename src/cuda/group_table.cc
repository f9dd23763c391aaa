#include "cuda/group_table.h"

#include <numeric>

#include "cuda/cuda_memory.h"
#include "cuda/int32_limits.h"

namespace epsweep::cuda {
namespace {

// Whether the arrays are only measured or really placed, they follow each other in this order.
class Places {
 public:
  explicit Places(std::byte* memory) : memory_(memory) {}

  template <typename T>
  void put(T*& array, std::int64_t count) {
    array = memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + bytes_);
    const std::int64_t bytes = count * static_cast<std::int64_t>(sizeof(T));
    bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  static constexpr std::int64_t kAlignment = 16;

  std::byte* memory_;
  std::int64_t bytes_ = 0;
};

struct Placed {
  GroupArrays arrays;
  std::int64_t bytes = 0;
};

Placed place_arrays(void* memory, std::int64_t groups) {
  Places places(static_cast<std::byte*>(memory));
  GroupArrays arrays;
  places.put(arrays.w, groups);
  places.put(arrays.x, groups);
  places.put(arrays.y, groups);
  places.put(arrays.stride_k, groups);
  places.put(arrays.stride_n, groups);
  places.put(arrays.shape, 3 * groups);
  places.put(arrays.n, groups);
  places.put(arrays.rows, groups);
  places.put(arrays.k, groups);
  return {arrays, places.bytes()};
}

std::int64_t total_of(std::span<const std::int64_t> rows_per_expert) {
  return std::accumulate(rows_per_expert.begin(), rows_per_expert.end(), std::int64_t{0});
}

}  // namespace

void GroupTable::check(std::span<const std::int64_t> rows_per_expert) const {
  as_int32(total_of(rows_per_expert), "rows of all experts");
}

GroupTable::GroupTable(const GemmShape& shape)
    : shape_(shape), memory_(make_device_buffer(place_arrays(nullptr, shape.num_experts).bytes)) {
  arrays_ = place_arrays(memory_.data(), shape.num_experts).arrays;
}

Groups GroupTable::describe(cudaStream_t stream, const Operands& operands,
                            std::span<const std::int64_t> rows_per_expert) {
  const GroupOperands all{.x = operands.x,
                          .w = operands.w,
                          .y = operands.y,
                          .n = shape_.n,
                          .k = shape_.k,
                          .element_bytes = bytes_of(shape_.dtype)};
  GroupRows rows{};
  Groups groups{.rows = total_of(rows_per_expert)};
  int count = 0;
  const auto flush = [&] {
    if (count == 0) return;
    describe_groups(stream, rows, groups.count, count, all, arrays_);
    groups.count += count;
    ++groups.launches;
    rows.begin[0] = rows.begin[count];
    count = 0;
  };
  for (std::size_t expert = 0; expert < rows_per_expert.size(); ++expert) {
    const auto own = static_cast<std::int32_t>(rows_per_expert[expert]);
    if (own == 0) continue;
    if (count == kGroupsOfLaunch) flush();
    rows.expert[count] = static_cast<std::int32_t>(expert);
    rows.begin[count + 1] = rows.begin[count] + own;
    ++count;
  }
  flush();
  return groups;
}

}  // namespace epsweep::cuda
