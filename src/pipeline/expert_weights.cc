#include "pipeline/expert_weights.h"

#include <fmt/format.h>

#include "base/text.h"
#include "workload/gate.h"
#include "workload/payload.h"

namespace epsweep {
namespace {

// Rows of a matrix in the kernel's dtype, one after the other.
void fill_rows(const PayloadMatrix& matrix, DType dtype, std::int64_t row_begin,
               std::int64_t row_end, void* out) {
  const auto cols = static_cast<std::size_t>(matrix.cols());
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    const auto offset = static_cast<std::size_t>(row - row_begin) * cols;
    if (dtype == DType::bf16) {
      matrix.fill_row(row, std::span(static_cast<std::uint16_t*>(out) + offset, cols));
    } else {
      matrix.fill_row(row, std::span(static_cast<float*>(out) + offset, cols));
    }
  }
}

Buffer to_device(const std::vector<float>& host, Backend& backend) {
  const auto bytes = static_cast<std::int64_t>(host.size() * sizeof(float));
  Buffer buffer = backend.make_buffer(bytes);
  backend.copy_from_host(host.data(), buffer, bytes);
  return buffer;
}

Buffer gate_weights(const SweepPoint& point, int layer, Backend& backend) {
  const PayloadMatrix matrix = gate_matrix(point.seed, layer, point.model.hidden_dim);
  std::vector<float> host(
      static_cast<std::size_t>(point.model.num_experts * point.model.hidden_dim));
  fill_rows(matrix, DType::fp32, 0, point.model.num_experts, host.data());
  return to_device(host, backend);
}

}  // namespace

GemmShape gate_up_shape(const RankWork& work) {
  return {.num_experts = work.num_own_slots(),
          .n = work.point.model.gate_up_cols(),
          .k = work.point.model.expert_io_dim,
          .dtype = work.point.dtype};
}

GemmShape down_shape(const RankWork& work) {
  return {.num_experts = work.num_own_slots(),
          .n = work.point.model.expert_io_dim,
          .k = work.point.model.ffn_dim,
          .dtype = work.point.dtype};
}

std::string weights_key(const RankWork& work) {
  const SweepPoint& point = work.point;
  std::string experts;
  for (int layer = 0; layer < point.layers; ++layer) {
    experts += join(work.own_experts(layer)) + ';';
  }
  return fmt::format("{} layers={} seed={} dtype={} gemm={} experts={}",
                     to_json_line(model_shape_json(point.model)), point.layers, point.seed,
                     to_string(point.dtype), point.grouped_gemm, experts);
}

ExpertWeights prepare_weights(const RankWork& work, Backend& backend, const GemmMaker& make_gemm) {
  const SweepPoint& point = work.point;
  ExpertWeights weights{.key = weights_key(work), .layers = {}};
  for (int layer = 0; layer < point.layers; ++layer) {
    const std::vector<int>& experts = work.own_experts(layer);
    const auto expert_id = [&experts](int local) {
      return experts[static_cast<std::size_t>(local)];
    };
    const auto gate_up = [&](int local, std::int64_t begin, std::int64_t end, void* out) {
      fill_rows(gate_up_matrix(point.seed, layer, expert_id(local), point.model.expert_io_dim),
                point.dtype, begin, end, out);
    };
    const auto down = [&](int local, std::int64_t begin, std::int64_t end, void* out) {
      fill_rows(down_matrix(point.seed, layer, expert_id(local), point.model.ffn_dim), point.dtype,
                begin, end, out);
    };
    LayerWeights made{
        .gate = gate_weights(point, layer, backend),
        .selection_bias = to_device(layer_selection_bias(point.seed, layer, point.model), backend),
        .gate_up = make_gemm(gate_up_shape(work)),
        .down = make_gemm(down_shape(work))};
    made.gate_up->prepare(gate_up);
    made.down->prepare(down);
    weights.layers.push_back(std::move(made));
  }
  return weights;
}

void ExpertWeights::flush_from_caches() {
  for (LayerWeights& layer : layers) {
    layer.gate_up->flush_weights();
    layer.down->flush_weights();
  }
}

}  // namespace epsweep
