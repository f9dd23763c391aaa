#include "cpu/cpu_token_ops.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "base/slot_order.h"
#include "cpu/row_kernels.h"

namespace epsweep {
namespace {

// Below this, waking a thread (some 10 us) costs more than it saves.
constexpr std::int64_t kBytesPerChunk = 256 << 10;
// Columns whose fp32 sums stay in the level-1 cache while a token's rows are added.
constexpr std::int64_t kReduceCols = 1024;

constexpr std::size_t size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

// function(row) for every row; rows are handed out in chunks of about kBytesPerChunk.
template <typename Function>
void for_each_row(ThreadPool& pool, std::int64_t rows, std::int64_t row_bytes,
                  const Function& function) {
  const std::int64_t chunk =
      std::max<std::int64_t>(1, kBytesPerChunk / std::max<std::int64_t>(1, row_bytes));
  pool.run((rows + chunk - 1) / chunk, [&](std::int64_t item, int) {
    const std::int64_t end = std::min(rows, (item + 1) * chunk);
    for (std::int64_t row = item * chunk; row < end; ++row) function(row);
  });
}

template <typename Element>
void activate(ThreadPool& pool, Activation kind, std::int64_t rows, std::int64_t cols,
              const Element* in, Element* out) {
  const auto row_bytes = 2 * cols * static_cast<std::int64_t>(sizeof(Element));
  for_each_row(pool, rows, row_bytes, [&](std::int64_t row) {
    if (kind == Activation::swiglu) {
      const Element* gate = in + row * 2 * cols;
      swiglu_row(gate, gate + cols, cols, out + row * cols);
    } else {
      squared_relu_row(in + row * cols, cols, out + row * cols);
    }
  });
}

struct ReduceArguments {
  std::int64_t top_k = 0, cols = 0;
  const std::int32_t* position = nullptr;
  const float* weights = nullptr;
  float* out = nullptr;
};

template <typename Element>
void reduce_token(const ReduceArguments& arguments, const Element* in, std::int64_t token) {
  const std::int64_t cols = arguments.cols, first = token * arguments.top_k;
  float* const out = arguments.out + token * cols;
  for (std::int64_t begin = 0; begin < cols; begin += kReduceCols) {
    const std::int64_t count = std::min(kReduceCols, cols - begin);
    std::fill_n(out + begin, count, 0.0F);
    for (std::int64_t j = first; j < first + arguments.top_k; ++j) {
      add_scaled_row(arguments.weights[j], in + arguments.position[j] * cols + begin, count,
                     out + begin);
    }
  }
}

// The row numbers of an index; host memory, as every buffer of this backend.
std::span<const std::int32_t> rows_of(const RowIndex& index) {
  if (index.buffer == nullptr) return {};
  return index.buffer->as<std::int32_t>().first(size(index.count));
}

struct SegmentArguments {
  const SegmentReduce& op;
  std::span<const std::int32_t> first, row;
  const float* weights;  // null for ones

  std::int64_t begin_of(std::int64_t segment) const { return first[size(segment)]; }
  float weight(std::int64_t i) const { return weights == nullptr ? 1.0F : weights[i]; }
};

// Columns [begin, begin + count) of one segment's sum, in fp32.
template <typename Element>
void sum_segment(const SegmentArguments& arguments, const Element* in, std::int64_t segment,
                 std::int64_t begin, std::int64_t count, float* sums) {
  std::fill_n(sums, count, 0.0F);
  const std::int64_t end = arguments.begin_of(segment + 1);
  for (std::int64_t i = arguments.begin_of(segment); i < end; ++i) {
    add_scaled_row(arguments.weight(i), in + arguments.row[size(i)] * arguments.op.cols + begin,
                   count, sums);
  }
}

template <typename Element>
void reduce_segments(ThreadPool& pool, const SegmentArguments& arguments, const Element* in,
                     Buffer& out) {
  const std::int64_t cols = arguments.op.cols;
  const std::int64_t segments = arguments.op.segments;
  const std::int64_t mean_rows = arguments.begin_of(segments) / std::max<std::int64_t>(1, segments);
  const auto row_bytes = (mean_rows + 1) * cols * static_cast<std::int64_t>(sizeof(Element));
  for_each_row(pool, segments, row_bytes, [&](std::int64_t segment) {
    std::array<float, size(kReduceCols)> sums;
    for (std::int64_t begin = 0; begin < cols; begin += kReduceCols) {
      const std::int64_t count = std::min(kReduceCols, cols - begin), at = segment * cols + begin;
      if (arguments.op.out_dtype == DType::fp32) {
        sum_segment(arguments, in, segment, begin, count, out.as<float>().data() + at);
      } else {
        sum_segment(arguments, in, segment, begin, count, sums.data());
        narrow_row(sums.data(), count, out.as<std::uint16_t>().data() + at);
      }
    }
  });
}

}  // namespace

void CpuTokenOps::router(Lane&, const RouterOp& op, const Buffer& x, const Buffer& gate,
                         const Buffer& prescribed, Buffer& own_choice, Buffer& weights) {
  const auto choices = prescribed.as<std::int32_t>().first(size(op.num_tokens * op.top_k));
  router_.run(pool_, op, x, gate, choices, own_choice, weights);
}

void CpuTokenOps::assign_slots(Lane&, const AssignSlots& op, const Buffer& experts, Buffer& slots) {
  const SlotTable table = {op.first_of_expert->as<std::int32_t>(),
                           op.slots_by_expert->as<std::int32_t>()};
  const std::size_t count = size(op.assignments);
  epsweep::assign_slots(table, experts.as<std::int32_t>().first(count), op.first_token, op.top_k,
                        slots.as<std::int32_t>().first(count));
}

void CpuTokenOps::count_slots(Lane&, const SlotSort& op, const Buffer& slots, Buffer& counts) {
  const auto totals = counts.as<std::int64_t>().first(size(op.num_slots));
  std::ranges::fill(totals, 0);
  epsweep::count_slots(slots.as<std::int32_t>().first(size(op.assignments)), totals);
}

void CpuTokenOps::sort_by_slot(Lane&, const SlotSort& op, const Buffer& slots, Buffer& counts,
                               Buffer& position) {
  const auto of_assignment = slots.as<std::int32_t>().first(size(op.assignments));
  const auto totals = counts.as<std::int64_t>().first(size(op.num_slots));
  const auto places = position.as<std::int32_t>().first(of_assignment.size());
  if (op.capacity == 0) return epsweep::sort_by_slot(of_assignment, totals, places);
  const RankSections sections = {.capacity = op.capacity,
                                 .first_slot_of_rank = op.first_slot_of_rank->as<std::int32_t>()};
  epsweep::sort_by_slot(of_assignment, sections, totals, places);
}

void CpuTokenOps::order_by_expert(Lane&, const ReceivedPairs& op, const Buffer& recv_counts,
                                  Buffer& expert_order) {
  const std::int64_t pairs = std::int64_t{op.num_sources} * op.num_local_experts;
  epsweep::order_by_expert(recv_counts.as<std::int64_t>().first(size(pairs)), op.num_sources,
                           op.num_local_experts, expert_order.as<std::int32_t>(), op.capacity);
}

void CpuTokenOps::scatter_rows(Lane&, const Buffer& in, std::int64_t in_stride_bytes, int repeat,
                               const RowIndex& index, std::int64_t row_bytes, Buffer& out) {
  const std::span<const std::int32_t> position = rows_of(index);
  const auto* from = static_cast<const std::byte*>(in.data());
  auto* to = static_cast<std::byte*>(out.data());
  const auto rows = static_cast<std::int64_t>(position.size());
  for_each_row(pool_, rows, row_bytes, [&](std::int64_t row) {
    std::memcpy(to + position[size(row)] * row_bytes, from + row / repeat * in_stride_bytes,
                size(row_bytes));
  });
}

void CpuTokenOps::gather_rows(Lane& lane, const Buffer& in, const RowIndex& source,
                              std::int64_t row_bytes, Buffer& out) {
  move_rows(lane,
            {.row_bytes = row_bytes,
             .in_stride_bytes = row_bytes,
             .out_stride_bytes = row_bytes,
             .source = source,
             .position = {}},
            in, out);
}

void CpuTokenOps::move_rows(Lane&, const MoveRows& op, const Buffer& in, Buffer& out) {
  const auto* from = static_cast<const std::byte*>(in.data());
  auto* to = static_cast<std::byte*>(out.data());
  const std::span<const std::int32_t> source = rows_of(op.source), position = rows_of(op.position);
  for_each_row(pool_, std::ssize(source), op.row_bytes, [&](std::int64_t row) {
    const std::int64_t target = position.empty() ? row : position[size(row)];
    std::memcpy(to + target * op.out_stride_bytes, from + source[size(row)] * op.in_stride_bytes,
                size(op.row_bytes));
  });
}

void CpuTokenOps::activation(Lane&, Activation kind, DType dtype, std::int64_t rows,
                             std::int64_t cols, const Buffer& in, Buffer& out) {
  if (dtype == DType::fp32) {
    activate(pool_, kind, rows, cols, in.as<float>().data(), out.as<float>().data());
  } else {
    activate(pool_, kind, rows, cols, in.as<std::uint16_t>().data(),
             out.as<std::uint16_t>().data());
  }
}

void CpuTokenOps::weighted_reduce(Lane&, DType dtype, int top_k, const RowIndex& index,
                                  const Buffer& weights, std::int64_t cols, const Buffer& in,
                                  Buffer& out) {
  if (top_k == 0) return;
  const std::span<const std::int32_t> position = rows_of(index);
  const ReduceArguments arguments{top_k, cols, position.data(), weights.as<float>().data(),
                                  out.as<float>().data()};
  const std::int64_t tokens = static_cast<std::int64_t>(position.size()) / top_k;
  for_each_row(pool_, tokens, top_k * cols * bytes_of(dtype), [&](std::int64_t token) {
    if (dtype == DType::fp32) {
      reduce_token(arguments, in.as<float>().data(), token);
    } else {
      reduce_token(arguments, in.as<std::uint16_t>().data(), token);
    }
  });
}

void CpuTokenOps::segment_reduce(Lane&, const SegmentReduce& op, const Buffer& in, Buffer& out) {
  const SegmentArguments arguments{
      .op = op,
      .first = op.first->as<std::int32_t>(),
      .row = op.row->as<std::int32_t>(),
      .weights = op.weights == nullptr ? nullptr : op.weights->as<float>().data()};
  if (op.in_dtype == DType::fp32) {
    reduce_segments(pool_, arguments, in.as<float>().data(), out);
  } else {
    reduce_segments(pool_, arguments, in.as<std::uint16_t>().data(), out);
  }
}

}  // namespace epsweep
