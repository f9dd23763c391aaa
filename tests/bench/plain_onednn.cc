#include "plain_onednn.h"

#include <unordered_map>
#include <vector>

#include <omp.h>
#include <oneapi/dnnl/dnnl.hpp>

#include "cpu/cache_flush.h"
#include "cpu/cpu_backend.h"

namespace epsweep {
namespace {

using dnnl::memory;

memory::desc row_major(std::int64_t rows, std::int64_t cols) {
  return {{rows, cols}, memory::data_type::bf16, memory::format_tag::ab};
}

}  // namespace

struct PlainOneDnn::State {
  int experts = 0;
  std::int64_t n = 0, k = 0, rows = 0;
  std::function<void(int, void*)> fill;
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::inner_product_forward product;
  memory::desc layout;
  Buffer weights;
  std::int64_t expert_bytes = 0;

  dnnl::inner_product_forward::primitive_desc product_for(std::int64_t num_rows) {
    const dnnl::inner_product_forward::desc desc(
        dnnl::prop_kind::forward_inference, row_major(num_rows, k),
        {{n, k}, memory::data_type::bf16, memory::format_tag::any}, row_major(num_rows, n));
    return {desc, engine};
  }

  void pack(const memory::desc& wanted) {
    if (wanted == layout) return;
    layout = wanted;
    expert_bytes = static_cast<std::int64_t>((wanted.get_size() + 63) / 64 * 64);
    if (weights.bytes() < experts * expert_bytes) {
      weights = Buffer();
      weights = make_cpu_buffer(experts * expert_bytes);
    }
    Buffer plain = make_cpu_buffer(n * k * 2);
    for (int expert = 0; expert < experts; ++expert) {
      fill(expert, plain.data());
      memory from(row_major(n, k), engine, plain.data());
      memory to(layout, engine, of_expert(expert));
      dnnl::reorder(from, to).execute(stream, from, to);
      stream.wait();
    }
  }

  void* of_expert(int expert) {
    return static_cast<std::byte*>(weights.data()) + expert * expert_bytes;
  }
};

PlainOneDnn::PlainOneDnn(int experts, std::int64_t n, std::int64_t k,
                         std::function<void(int, void*)> fill)
    : state_(std::make_unique<State>()) {
  state_->experts = experts;
  state_->n = n;
  state_->k = k;
  state_->fill = std::move(fill);
}

PlainOneDnn::~PlainOneDnn() = default;

void PlainOneDnn::prepare(std::int64_t rows, int threads) {
  omp_set_num_threads(threads);
  const auto desc = state_->product_for(rows);
  state_->rows = rows;
  state_->product = dnnl::inner_product_forward(desc);
  state_->pack(desc.weights_desc());
  flush_from_caches(state_->weights.data(), state_->weights.bytes());
}

void PlainOneDnn::run(const void* x, void* y) {
  State& state = *state_;
  auto* in = static_cast<const std::byte*>(x);
  auto* out = static_cast<std::byte*>(y);
  for (int expert = 0; expert < state.experts; ++expert) {
    const memory source(row_major(state.rows, state.k), state.engine, const_cast<std::byte*>(in));
    const memory weight(state.layout, state.engine, state.of_expert(expert));
    const memory result(row_major(state.rows, state.n), state.engine, out);
    state.product.execute(
        state.stream, {{DNNL_ARG_SRC, source}, {DNNL_ARG_WEIGHTS, weight}, {DNNL_ARG_DST, result}});
    in += state.rows * state.k * 2;
    out += state.rows * state.n * 2;
  }
  state.stream.wait();
}

}  // namespace epsweep
