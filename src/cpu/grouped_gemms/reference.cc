// The kernel the others are judged by: no blocking, no packing, one order of addition.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/bfloat16.h"
#include "base/error.h"
#include "cpu/cache_flush.h"
#include "cpu/cpu_backend.h"
#include "cpu/thread_pool.h"
#include "device/grouped_gemm.h"

namespace epsweep {
namespace {

float widened(float value) {
  return value;
}
float widened(std::uint16_t bits) {
  return float_of_bf16(bits);
}
void narrow(float value, float& out) {
  out = value;
}
void narrow(float value, std::uint16_t& out) {
  out = bf16_of_float(value);
}

// y[n] = sum over ascending k of x[k] * w[n][k], in fp32. Depends on nothing but the row, so
// results are bit-equal whatever the other rows are and wherever the row lies.
template <typename Element>
void multiply_row(const GemmShape& shape, const Element* x, const Element* w, Element* y) {
  for (std::int64_t n = 0; n < shape.n; ++n) {
    float sum = 0;
    for (std::int64_t k = 0; k < shape.k; ++k) sum += widened(x[k]) * widened(w[n * shape.k + k]);
    narrow(sum, y[n]);
  }
}

class ReferenceGemm final : public GroupedGemm {
 public:
  ReferenceGemm(const GemmShape& shape, int num_threads) : shape_(shape), pool_(num_threads) {}

  void prepare(const WeightSource& source) override {
    weights_ = make_cpu_buffer(shape_.num_experts * expert_bytes());
    auto* out = static_cast<std::byte*>(weights_.data());
    for (int expert = 0; expert < shape_.num_experts; ++expert) {
      fill_payload(source(expert), 0, shape_.n * shape_.k, shape_.dtype,
                   out + expert * expert_bytes());
    }
  }

  void warm(std::span<const std::int64_t>) override {}

  GemmWork run(Lane&, const Buffer& x, Buffer& y,
               std::span<const std::int64_t> rows_per_expert) override {
    EPS_EXPECT(rows_per_expert.size() == static_cast<std::size_t>(shape_.num_experts),
               "one row count per local expert");
    GemmWork work;
    for (int expert = 0; expert < shape_.num_experts; ++expert) {
      const std::int64_t rows = rows_per_expert[static_cast<std::size_t>(expert)];
      if (rows == 0) continue;
      if (shape_.dtype == DType::bf16) {
        multiply<std::uint16_t>(expert, work.computed_rows, rows, x, y);
      } else {
        multiply<float>(expert, work.computed_rows, rows, x, y);
      }
      work.computed_rows += rows;
      ++work.kernel_calls;
    }
    work.stored_rows = work.computed_rows;
    return work;
  }

  void flush_weights() override { flush_from_caches(weights_.data(), weights_.bytes()); }
  std::int64_t weight_bytes() const override { return weights_.bytes(); }

 private:
  std::int64_t expert_bytes() const { return shape_.n * shape_.k * bytes_of(shape_.dtype); }

  template <typename Element>
  void multiply(int expert, std::int64_t first_row, std::int64_t rows, const Buffer& x, Buffer& y) {
    const Element* w = weights_.as<Element>().data() + expert * shape_.n * shape_.k;
    const Element* in = x.as<Element>().data() + first_row * shape_.k;
    Element* out = y.as<Element>().data() + first_row * shape_.n;
    pool_.run(rows, [&](std::int64_t row, int) {
      multiply_row(shape_, in + row * shape_.k, w, out + row * shape_.n);
    });
  }

  GemmShape shape_;
  ThreadPool pool_;
  Buffer weights_;
};

std::optional<std::string> refuses(const GemmShape&) {
  return std::nullopt;
}

std::unique_ptr<GroupedGemm> make(const GemmShape& shape, int num_threads) {
  return std::make_unique<ReferenceGemm>(shape, num_threads);
}

const bool registered =
    GroupedGemmCatalog::instance().add({.name = "reference",
                                        .backend = "cpu",
                                        .summary = "plain loops in fp32, slow and row independent",
                                        .refuses = refuses,
                                        .make = make});

}  // namespace
}  // namespace epsweep
