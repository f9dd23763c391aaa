// What a program does that pads: all experts get the rows of the largest, in one batched product.
#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "cpu/cache_flush.h"
#include "cpu/cpu_backend.h"
#include "cpu/onednn_code.h"
#include "cpu/thread_pool.h"
#include "device/grouped_gemm.h"

namespace epsweep {
namespace {

using namespace onednn;

// [experts][rows][cols], dense.
memory::desc batch(const GemmShape& shape, std::int64_t rows, std::int64_t cols) {
  return {{shape.num_experts, rows, cols}, type_of(shape.dtype), memory::format_tag::abc};
}

// [experts][n][k] in memory, which is how frameworks hold them: oneDNN 2.x takes no packed weights
// in a batched product and packs them in every call.
memory::desc batched_weights(const GemmShape& shape) {
  return {{shape.num_experts, shape.k, shape.n}, type_of(shape.dtype), memory::format_tag::acb};
}

dnnl::matmul::primitive_desc product_of(const GemmShape& shape, std::int64_t rows) {
  const dnnl::matmul::desc operation(batch(shape, rows, shape.k), batched_weights(shape),
                                     batch(shape, rows, shape.n));
  return {operation, own_scratch(), cpu_engine()};
}

std::int64_t most_rows(std::span<const std::int64_t> rows_per_expert) {
  return rows_per_expert.empty()
             ? 0
             : *std::max_element(rows_per_expert.begin(), rows_per_expert.end());
}

class PaddedGemm final : public GroupedGemm {
 public:
  PaddedGemm(const GemmShape& shape, int num_threads)
      : shape_(shape), pool_(num_threads), stream_(cpu_engine()) {}

  void prepare(const WeightSource& source) override {
    const std::int64_t elements = shape_.n * shape_.k;
    weights_ = make_cpu_buffer(shape_.num_experts * elements * bytes_of(shape_.dtype));
    auto* const place = static_cast<std::byte*>(weights_.data());
    pool_.run(shape_.num_experts, [&](std::int64_t expert, int) {
      fill_payload(source(static_cast<int>(expert)), 0, elements, shape_.dtype,
                   place + expert * elements * bytes_of(shape_.dtype));
    });
  }

  void warm(std::span<const std::int64_t> rows_per_expert) override {
    const std::int64_t rows = most_rows(rows_per_expert);
    if (rows == 0 || products_.count(rows) != 0) return;
    const Threads threads(pool_.num_threads());
    const auto desc = product_of(shape_, rows);
    const std::int64_t element = bytes_of(shape_.dtype), batch_rows = shape_.num_experts * rows;
    reserve(x_, batch_rows * shape_.k * element);
    reserve(y_, batch_rows * shape_.n * element);
    reserve(scratch_, static_cast<std::int64_t>(desc.scratchpad_desc().get_size()));
    products_.emplace(rows,
                      Product{dnnl::matmul(desc), memory(desc.src_desc(), cpu_engine(), nullptr),
                              memory(desc.weights_desc(), cpu_engine(), weights_.data()),
                              memory(desc.dst_desc(), cpu_engine(), nullptr),
                              memory(desc.scratchpad_desc(), cpu_engine(), nullptr)});
  }

  GemmWork run(Lane&, const Buffer& x, Buffer& y,
               std::span<const std::int64_t> rows_per_expert) override {
    EPS_EXPECT(rows_per_expert.size() == static_cast<std::size_t>(shape_.num_experts),
               "one row count per local expert");
    const std::int64_t rows = most_rows(rows_per_expert);
    if (rows == 0) return {};
    warm(rows_per_expert);
    copy_in(x, rows, rows_per_expert);
    multiply(rows);
    copy_out(y, rows, rows_per_expert);
    return {.kernel_calls = 3,
            .computed_rows = shape_.num_experts * rows,
            .stored_rows = shape_.num_experts * rows,
            .workspace_bytes = x_.bytes() + y_.bytes() + scratch_.bytes(),
            .choice = nullptr};
  }

  void flush_weights() override { flush_from_caches(weights_.data(), weights_.bytes()); }
  std::int64_t weight_bytes() const override { return weights_.bytes(); }

 private:
  struct Product {
    dnnl::matmul product;
    memory x, weights, y, scratch;
  };

  static void reserve(Buffer& buffer, std::int64_t bytes) {
    if (buffer.bytes() < bytes) buffer = make_cpu_buffer(bytes);
  }

  // function(expert, its first row among all, its rows).
  template <typename Function>
  void for_each_expert(std::span<const std::int64_t> rows_per_expert, const Function& function) {
    first_rows_.assign(rows_per_expert.begin(), rows_per_expert.end());
    std::exclusive_scan(first_rows_.begin(), first_rows_.end(), first_rows_.begin(),
                        std::int64_t{0});
    pool_.run(shape_.num_experts, [&](std::int64_t expert, int) {
      const auto index = static_cast<std::size_t>(expert);
      function(expert, first_rows_[index], rows_per_expert[index]);
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

  void multiply(std::int64_t rows) {
    const Threads threads(pool_.num_threads());
    Product& product = products_.at(rows);
    // The buffers may have grown since.
    product.x.set_data_handle(x_.data());
    product.y.set_data_handle(y_.data());
    product.scratch.set_data_handle(scratch_.data());
    const std::array<dnnl_exec_arg_t, 4> arguments = {
        {{DNNL_ARG_SRC, product.x.get()},
         {DNNL_ARG_WEIGHTS, product.weights.get()},
         {DNNL_ARG_DST, product.y.get()},
         {DNNL_ARG_SCRATCHPAD, product.scratch.get()}}};
    check(dnnl_primitive_execute(product.product.get(), stream_.get(),
                                 static_cast<int>(arguments.size()), arguments.data()),
          "a batched matrix product");
    stream_.wait();
  }

  GemmShape shape_;
  ThreadPool pool_;
  dnnl::stream stream_;
  Buffer weights_, x_, y_, scratch_;
  std::vector<std::int64_t> first_rows_;
  std::map<std::int64_t, Product> products_;  // by rows of the largest expert
};

std::optional<std::string> refuses(const GemmShape& shape) {
  if (shape.n < 1 || shape.k < 1) return "n and k must be at least 1";
  try {
    const std::string implementation = product_of(shape, 1).impl_info_str();
    if (implementation.rfind("ref", 0) != 0) return std::nullopt;
  } catch (const dnnl::error&) {
  }
  return "oneDNN has no fast batched " + std::string(to_string(shape.dtype)) +
         " product for this shape and CPU";
}

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
     .summary = "every expert gets the rows of the largest: one batched oneDNN product",
     .refuses = refuses,
     .make = make,
     .scratch_bytes = scratch_bytes});

}  // namespace
}  // namespace epsweep
