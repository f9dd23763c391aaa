#include "cpu/cpu_token_ops.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <type_traits>

#include "base/slot_order.h"
#include "cpu/row_kernels.h"
#include "cpu/row_streams.h"

namespace epsweep {
namespace {

// Below this, waking a thread (some 10 us) costs more than it saves.
constexpr std::int64_t kBytesPerChunk = 256 << 10;
// Columns whose sums stay in the level-1 cache until they are narrowed, and for which lines of the
// next columns are fetched.
constexpr std::int64_t kSumCols = 512;
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
    stream_fence();
  });
}

struct ActivationRows {
  Activation kind = Activation::swiglu;
  std::int64_t rows = 0, cols = 0;

  std::int64_t in_cols() const { return kind == Activation::swiglu ? 2 * cols : cols; }
};

void activate(ThreadPool& pool, const ActivationRows& op, const float* in, float* out) {
  const std::int64_t in_cols = op.in_cols();
  for_each_row(pool, op.rows, in_cols * std::int64_t{sizeof(*in)}, [&](std::int64_t row) {
    const float* const first = in + row * in_cols;
    if (op.kind == Activation::swiglu) {
      swiglu_row(first, first + op.cols, op.cols, out + row * op.cols);
    } else {
      squared_relu_row(first, op.cols, out + row * op.cols);
    }
  });
}

void activate(ThreadPool& pool, const ActivationRows& op, const std::uint16_t* in,
              std::uint16_t* out) {
  const std::int64_t in_cols = op.in_cols();
  const Stores stores = stores_of(op.rows * op.cols * std::int64_t{sizeof(*out)});
  for_each_row(pool, op.rows, in_cols * std::int64_t{sizeof(*in)}, [&](std::int64_t row) {
    const BusyRow first = {in + row * in_cols, in + (row + 1) * in_cols};
    const BusyRow up = {first.row + op.cols, first.next + op.cols};
    std::uint16_t* const result = out + row * op.cols;
    if (op.kind == Activation::squared_relu) {
      squared_relu_row(first, op.cols, result);
    } else if (stores == Stores::streamed) {
      stream_swiglu_row(first, up, op.cols, result);
    } else {
      swiglu_row(first, up, op.cols, result);
    }
  });
}

// The row numbers of an index; host memory, as every buffer of this backend.
std::span<const std::int32_t> rows_of(const RowIndex& index) {
  if (index.buffer == nullptr) return {};
  return index.buffer->as<std::int32_t>().first(size(index.count));
}

// Sums of rows of a buffer.
template <typename Element>
struct Sums {
  const Element* in = nullptr;
  std::int64_t cols = 0;
  std::span<const std::int32_t> rows;  // of all sums, one after the other
  const float* weights = nullptr;      // as many; null for ones
  Stores stores = Stores::cached;
};

// rows[first .. first + count) make one sum, the rows behind them the next one.
struct SumRange {
  std::size_t first = 0, count = 0, next_count = 0;
};

template <typename Element>
void write_sums(Stores stores, const RowSum<Element>& sum, std::int64_t count, float* out) {
  if (stores == Stores::streamed) return stream_sum_rows(sum, count, out);
  sum_rows(sum, count, out);
}

template <typename Element>
void write_sums(Stores stores, const RowSum<Element>& sum, std::int64_t count, std::uint16_t* out) {
  alignas(64) std::array<float, size(kSumCols)> sums;
  alignas(64) std::array<std::uint16_t, size(kSumCols)> narrow;
  sum_rows(sum, count, sums.data());
  narrow_row(sums.data(), count, narrow.data());
  write_row(stores, narrow.data(), narrow.data(), out, count * std::int64_t{sizeof(*out)});
}

// While a block of columns is added, the next one of the same rows is fetched, or the first one of
// the rows of the next sum.
template <typename Element, typename Result>
void write_sum(const Sums<Element>& op, const SumRange& range, Result* out) {
  const auto own = op.rows.subspan(range.first, range.count);
  const auto next = op.rows.subspan(range.first + range.count, range.next_count);
  for (std::int64_t begin = 0; begin < op.cols; begin += kSumCols) {
    const std::int64_t count = std::min(kSumCols, op.cols - begin), end = begin + count;
    const RowSum<Element> sum = {
        .in = op.in + begin,
        .stride = op.cols,
        .rows = own,
        .weights = op.weights == nullptr ? nullptr : op.weights + range.first,
        .ahead = end < op.cols ? op.in + end : op.in,
        .ahead_rows = end < op.cols ? own : next};
    write_sums(op.stores, sum, count, out + begin);
  }
}

template <typename Element>
void reduce_tokens(ThreadPool& pool, Sums<Element> op, std::int64_t top_k, float* out) {
  const std::int64_t tokens = std::ssize(op.rows) / top_k;
  const auto element = static_cast<std::int64_t>(sizeof(Element));
  op.stores = stores_of(tokens * op.cols * std::int64_t{sizeof(float)});
  for_each_row(pool, tokens, top_k * op.cols * element, [&](std::int64_t token) {
    const SumRange range = {.first = size(token * top_k),
                            .count = size(top_k),
                            .next_count = token + 1 < tokens ? size(top_k) : 0};
    write_sum(op, range, out + token * op.cols);
  });
}

template <typename Element, typename Result>
void reduce_segments(ThreadPool& pool, Sums<Element> op, std::span<const std::int32_t> first,
                     Result* out) {
  const std::int64_t segments = std::ssize(first) - 1;
  const std::int64_t mean_rows = std::ssize(op.rows) / std::max<std::int64_t>(1, segments);
  const auto element = static_cast<std::int64_t>(sizeof(Element));
  op.stores = stores_of(segments * op.cols * static_cast<std::int64_t>(sizeof(Result)));
  for_each_row(pool, segments, (mean_rows + 1) * op.cols * element, [&](std::int64_t segment) {
    const std::int32_t* const begin = first.data() + segment;
    const bool last = segment + 1 == segments;
    const SumRange range = {.first = size(begin[0]),
                            .count = size(begin[1] - begin[0]),
                            .next_count = last ? 0 : size(begin[2] - begin[1])};
    write_sum(op, range, out + segment * op.cols);
  });
}

template <typename Element>
void reduce_segments(ThreadPool& pool, const SegmentReduce& op, const Element* in, Buffer& out) {
  const auto first = op.first->as<std::int32_t>().first(size(op.segments + 1));
  const Sums<Element> sums = {
      .in = in,
      .cols = op.cols,
      .rows = op.row->as<std::int32_t>().first(size(first.back())),
      .weights = op.weights == nullptr ? nullptr : op.weights->as<float>().data()};
  if (op.out_dtype == DType::fp32) {
    reduce_segments(pool, sums, first, out.as<float>().data());
  } else {
    reduce_segments(pool, sums, first, out.as<std::uint16_t>().data());
  }
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
  const Stores stores = stores_of(rows * row_bytes);
  for_each_row(pool_, rows, row_bytes, [&](std::int64_t row) {
    const std::int64_t next = std::min(row + 1, rows - 1);
    write_row(stores, from + row / repeat * in_stride_bytes, from + next / repeat * in_stride_bytes,
              to + position[size(row)] * row_bytes, row_bytes);
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
  const std::int64_t rows = std::ssize(source);
  const Stores stores = stores_of(rows * op.row_bytes);
  for_each_row(pool_, rows, op.row_bytes, [&](std::int64_t row) {
    const std::int64_t target = position.empty() ? row : position[size(row)];
    const std::int64_t next = source[size(std::min(row + 1, rows - 1))];
    write_row(stores, from + source[size(row)] * op.in_stride_bytes,
              from + next * op.in_stride_bytes, to + target * op.out_stride_bytes, op.row_bytes);
  });
}

void CpuTokenOps::activation(Lane&, Activation kind, DType dtype, std::int64_t rows,
                             std::int64_t cols, const Buffer& in, Buffer& out) {
  const ActivationRows op = {.kind = kind, .rows = rows, .cols = cols};
  if (dtype == DType::fp32) {
    activate(pool_, op, in.as<float>().data(), out.as<float>().data());
  } else {
    activate(pool_, op, in.as<std::uint16_t>().data(), out.as<std::uint16_t>().data());
  }
}

void CpuTokenOps::weighted_reduce(Lane&, DType dtype, int top_k, const RowIndex& index,
                                  const Buffer& weights, std::int64_t cols, const Buffer& in,
                                  Buffer& out) {
  if (top_k == 0) return;
  const auto reduce = [&](auto* rows) {
    using Element = std::remove_const_t<std::remove_pointer_t<decltype(rows)>>;
    const Sums<Element> sums = {
        .in = rows, .cols = cols, .rows = rows_of(index), .weights = weights.as<float>().data()};
    reduce_tokens(pool_, sums, top_k, out.as<float>().data());
  };
  if (dtype == DType::fp32) {
    reduce(in.as<float>().data());
  } else {
    reduce(in.as<std::uint16_t>().data());
  }
}

void CpuTokenOps::segment_reduce(Lane&, const SegmentReduce& op, const Buffer& in, Buffer& out) {
  if (op.in_dtype == DType::fp32) {
    reduce_segments(pool_, op, in.as<float>().data(), out);
  } else {
    reduce_segments(pool_, op, in.as<std::uint16_t>().data(), out);
  }
}

}  // namespace epsweep
