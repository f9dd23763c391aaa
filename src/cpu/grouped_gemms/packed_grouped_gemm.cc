#include "cpu/grouped_gemms/packed_grouped_gemm.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/error.h"
#include "cpu/cpu_backend.h"

namespace epsweep {
namespace {

// Enough slices to balance two to eight threads even if one expert has most of the rows.
constexpr std::int64_t kSharedSliceCols = 512;
constexpr std::int64_t kMaxRows = 512;
constexpr std::int64_t kManyRows = 256;

// Measured with cold weights, k = 2048 and 7168. One row: the most results for which oneDNN takes
// its AVX-512 kernel, which streams at 0.95 to 1.0 of the read bandwidth against 0.85 for AMX. Many
// rows: weights that stay in a 2 MiB level-2 cache while the rows stream past. Between: whole rows,
// which need no copy.
std::int64_t call_cols_together(std::int64_t rows) {
  if (rows == 1) return 256;
  return rows < kManyRows ? INT64_MAX : 256;
}

std::int64_t call_cols_whole(std::int64_t) {
  return INT64_MAX;
}

std::int64_t up_to_panels(std::int64_t cols) {
  return (cols + kPanelCols - 1) / kPanelCols * kPanelCols;
}

PackedGemmCuts cuts_of(const GemmShape& shape, int num_threads, ExpertOrder order) {
  if (order == ExpertOrder::one_by_one) {
    const std::int64_t share = (shape.n + num_threads - 1) / num_threads;
    return {up_to_panels(share), INT64_MAX, call_cols_whole};
  }
  const std::int64_t cols = num_threads == 1 ? up_to_panels(shape.n) : kSharedSliceCols;
  return {cols, kMaxRows, call_cols_together};
}

void copy_rows(const std::byte* from, std::int64_t row_bytes, std::int64_t rows, std::byte* to,
               std::int64_t stride_bytes) {
  for (std::int64_t row = 0; row < rows; ++row) {
    std::memcpy(to + row * stride_bytes, from + row * row_bytes,
                static_cast<std::size_t>(row_bytes));
  }
}

}  // namespace

PackedGroupedGemm::PackedGroupedGemm(const GemmShape& shape, int num_threads, ExpertOrder order)
    : shape_(shape),
      order_(order),
      cuts_(cuts_of(shape, num_threads, order)),
      num_slices_((shape.n + cuts_.slice_cols - 1) / cuts_.slice_cols),
      pool_(num_threads),
      packed_(shape, num_threads),
      workers_(static_cast<std::size_t>(num_threads)),
      all_(static_cast<std::size_t>(shape.num_experts), 1) {
  experts_.reserve(static_cast<std::size_t>(shape.num_experts));
}

// function(first column, columns) for the calls one slice takes: as many panels each as the cuts
// want where oneDNN can, single panels elsewhere, the narrower last panel by itself.
template <typename Function>
void PackedGroupedGemm::for_each_call(std::int64_t slice, std::int64_t rows,
                                      const Function& function) {
  const std::int64_t wanted = cuts_.call_cols(rows), begin = slice * cuts_.slice_cols;
  const std::int64_t end = std::min(shape_.n, begin + cuts_.slice_cols);
  for (std::int64_t first = begin, cols = 0; first < end; first += cols) {
    const std::int64_t full = (end - first) / kPanelCols * kPanelCols;
    cols = full == 0 ? end - first : std::min(full, wanted);
    if (!packed_.can_call(cols)) cols = kPanelCols;
    function(first, cols);
  }
}

void PackedGroupedGemm::warm(std::span<const std::int64_t> rows_per_expert) {
  for (const std::int64_t rows : rows_per_expert) warm_rows(rows);
}

void PackedGroupedGemm::warm_rows(std::int64_t rows) {
  if (rows == 0 || !warm_rows_.insert(rows).second) return;
  const std::int64_t head = std::min(rows, cuts_.max_rows), rest = rows % cuts_.max_rows;
  for (std::int64_t slice = 0; slice < num_slices_; ++slice) {
    for_each_call(slice, head, [&](std::int64_t, std::int64_t cols) {
      packed_.warm(head, cols);
      if (rest != 0) packed_.warm(rest, cols);
      if (cols == shape_.n) return;
      tile_bytes_ = std::max(tile_bytes_, head * cols * bytes_of(shape_.dtype));
    });
  }
  for (Worker& worker : workers_) {
    if (worker.tile.bytes() < tile_bytes_) worker.tile = make_cpu_buffer(tile_bytes_);
  }
}

void PackedGroupedGemm::list_experts(std::span<const std::int64_t> rows_per_expert,
                                     std::span<const char> taken) {
  experts_.clear();
  std::int64_t first_row = 0;
  for (int expert = 0; expert < shape_.num_experts; ++expert) {
    const std::int64_t rows = rows_per_expert[static_cast<std::size_t>(expert)];
    if (rows > 0 && taken[static_cast<std::size_t>(expert)] != 0) {
      experts_.push_back({expert, first_row, rows});
    }
    first_row += rows;
  }
  // The largest last would leave all but one thread idle at the end. A single thread keeps memory
  // order.
  if (order_ == ExpertOrder::one_by_one || pool_.num_threads() == 1) return;
  std::sort(experts_.begin(), experts_.end(), [](const ExpertRows& a, const ExpertRows& b) {
    return a.rows != b.rows ? a.rows > b.rows : a.expert < b.expert;
  });
}

void PackedGroupedGemm::multiply(const ExpertRows& job, std::int64_t slice, int worker,
                                 const Buffer& x, Buffer& y) {
  const std::int64_t element = bytes_of(shape_.dtype), most = cuts_.max_rows;
  const auto* in = static_cast<const std::byte*>(x.data()) + job.first_row * shape_.k * element;
  auto* out = static_cast<std::byte*>(y.data()) + job.first_row * shape_.n * element;
  Worker& own = workers_[static_cast<std::size_t>(worker)];
  auto* const tile = static_cast<std::byte*>(own.tile.data());
  // Rows inside columns: the columns' weights stay in the cache for the next rows.
  for_each_call(slice, std::min(job.rows, most), [&](std::int64_t col, std::int64_t cols) {
    for (std::int64_t row = 0, count = 0; row < job.rows; row += count) {
      count = std::min(most, job.rows - row);
      std::byte* const place = out + (row * shape_.n + col) * element;
      // oneDNN's fast paths write dense rows only, so parts of rows pass through a tile.
      const bool whole = cols == shape_.n;
      packed_.multiply(worker, job.expert, col, cols, count, in + row * shape_.k * element,
                       whole ? place : tile);
      if (!whole) copy_rows(tile, cols * element, count, place, shape_.n * element);
      ++own.calls;
    }
  });
}

GemmWork PackedGroupedGemm::run(Lane&, const Buffer& x, Buffer& y,
                                std::span<const std::int64_t> rows_per_expert) {
  EPS_EXPECT(rows_per_expert.size() == static_cast<std::size_t>(shape_.num_experts),
             "one row count per local expert");
  return run_some(x, y, rows_per_expert, all_);
}

GemmWork PackedGroupedGemm::run_some(const Buffer& x, Buffer& y,
                                     std::span<const std::int64_t> rows_per_expert,
                                     std::span<const char> taken) {
  list_experts(rows_per_expert, taken);
  for (const ExpertRows& job : experts_) warm_rows(job.rows);
  for (Worker& worker : workers_) worker.calls = 0;
  if (order_ == ExpertOrder::together) {
    const auto items = static_cast<std::int64_t>(experts_.size()) * num_slices_;
    pool_.run(items, [&](std::int64_t item, int worker) {
      const ExpertRows& job = experts_[static_cast<std::size_t>(item / num_slices_)];
      multiply(job, item % num_slices_, worker, x, y);
    });
  } else {
    for (const ExpertRows& job : experts_) {
      pool_.run(num_slices_,
                [&](std::int64_t slice, int worker) { multiply(job, slice, worker, x, y); });
    }
  }
  GemmWork work;
  work.workspace_bytes = packed_.scratch_bytes();
  for (const Worker& worker : workers_) {
    work.kernel_calls += worker.calls;
    work.workspace_bytes += worker.tile.bytes();
  }
  for (const ExpertRows& job : experts_) work.computed_rows += job.rows;
  work.stored_rows = work.computed_rows;
  return work;
}

}  // namespace epsweep
