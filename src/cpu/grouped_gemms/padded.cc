// What a program does that pads: all experts get the rows of the largest, in one batch of products.
// oneDNN's own batched product would be no fair baseline: 2.x takes no packed weights for it and
// packs plain ones in every call.
#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "cpu/cpu_backend.h"
#include "cpu/grouped_gemms/packed_grouped_gemm.h"

namespace epsweep {
namespace {

std::int64_t most_rows(std::span<const std::int64_t> rows_per_expert) {
  return rows_per_expert.empty()
             ? 0
             : *std::max_element(rows_per_expert.begin(), rows_per_expert.end());
}

class PaddedGemm final : public GroupedGemm {
 public:
  PaddedGemm(const GemmShape& shape, int num_threads)
      : shape_(shape),
        pool_(num_threads),
        batch_(shape, num_threads, ExpertOrder::together),
        padded_rows_(static_cast<std::size_t>(shape.num_experts)) {}

  void prepare(const WeightSource& source) override { batch_.prepare(source); }

  void warm(std::span<const std::int64_t> rows_per_expert) override {
    EPS_EXPECT(rows_per_expert.size() == static_cast<std::size_t>(shape_.num_experts),
               "one row count per local expert");
    const std::int64_t rows = most_rows(rows_per_expert);
    std::ranges::fill(padded_rows_, rows);
    batch_.warm(padded_rows_);
    const std::int64_t batch_rows = shape_.num_experts * rows, element = bytes_of(shape_.dtype);
    if (x_.bytes() < batch_rows * shape_.k * element) {
      x_ = make_cpu_buffer(batch_rows * shape_.k * element);
      y_ = make_cpu_buffer(batch_rows * shape_.n * element);
      // Pages come with the first touch.
      for (Buffer* buffer : {&x_, &y_}) {
        std::memset(buffer->data(), 0, static_cast<std::size_t>(buffer->bytes()));
      }
    }
  }

  GemmWork run(Lane& lane, const Buffer& x, Buffer& y,
               std::span<const std::int64_t> rows_per_expert) override {
    warm(rows_per_expert);
    const std::int64_t rows = most_rows(rows_per_expert);
    if (rows == 0) return {};
    copy_in(x, rows, rows_per_expert);
    GemmWork work = batch_.run(lane, x_, y_, padded_rows_);
    copy_out(y, rows, rows_per_expert);
    work.kernel_calls += 2;
    work.workspace_bytes += x_.bytes() + y_.bytes();
    return work;
  }

  void flush_weights() override { batch_.flush_weights(); }
  std::int64_t weight_bytes() const override { return batch_.weight_bytes(); }

 private:
  // function(expert, its first row among all, its rows).
  template <typename Function>
  void for_each_expert(std::span<const std::int64_t> rows_per_expert, const Function& function) {
    pool_.run(shape_.num_experts, [&](std::int64_t expert, int) {
      const auto before = rows_per_expert.first(static_cast<std::size_t>(expert));
      function(expert, std::accumulate(before.begin(), before.end(), std::int64_t{0}),
               rows_per_expert[static_cast<std::size_t>(expert)]);
    });
  }

  void copy_in(const Buffer& x, std::int64_t rows, std::span<const std::int64_t> rows_per_expert) {
    const std::int64_t row_bytes = shape_.k * bytes_of(shape_.dtype);
    for_each_expert(
        rows_per_expert, [&](std::int64_t expert, std::int64_t first, std::int64_t count) {
          std::byte* const place = static_cast<std::byte*>(x_.data()) + expert * rows * row_bytes;
          std::memcpy(place, static_cast<const std::byte*>(x.data()) + first * row_bytes,
                      static_cast<std::size_t>(count * row_bytes));
          std::memset(place + count * row_bytes, 0,
                      static_cast<std::size_t>((rows - count) * row_bytes));
        });
  }

  void copy_out(Buffer& y, std::int64_t rows, std::span<const std::int64_t> rows_per_expert) {
    const std::int64_t row_bytes = shape_.n * bytes_of(shape_.dtype);
    for_each_expert(
        rows_per_expert, [&](std::int64_t expert, std::int64_t first, std::int64_t count) {
          std::memcpy(static_cast<std::byte*>(y.data()) + first * row_bytes,
                      static_cast<const std::byte*>(y_.data()) + expert * rows * row_bytes,
                      static_cast<std::size_t>(count * row_bytes));
        });
  }

  GemmShape shape_;
  ThreadPool pool_;
  PackedGroupedGemm batch_;
  std::vector<std::int64_t> padded_rows_;
  Buffer x_, y_;
};

std::unique_ptr<GroupedGemm> make(const GemmShape& shape, int num_threads) {
  return std::make_unique<PaddedGemm>(shape, num_threads);
}

// Rows of x and y for as many as the largest expert has.
std::int64_t scratch_bytes(const GemmShape& shape, std::span<const std::int64_t> rows_per_expert) {
  return shape.num_experts * most_rows(rows_per_expert) * (shape.k + shape.n) *
         bytes_of(shape.dtype);
}

const bool registered = GroupedGemmCatalog::instance().add(
    {.name = "padded",
     .backend = "cpu",
     .summary = "every expert gets the rows of the largest: a batch of equal oneDNN products",
     .refuses = PackedGemm::refuses,
     .make = make,
     .scratch_bytes = scratch_bytes});

}  // namespace
}  // namespace epsweep
