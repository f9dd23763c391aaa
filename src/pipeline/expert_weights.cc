#include "pipeline/expert_weights.h"

#include <fmt/format.h>

#include "base/text.h"
#include "workload/gate.h"
#include "workload/payload.h"

namespace epsweep {
namespace {

Buffer to_device(const std::vector<float>& host, Backend& backend) {
  const auto bytes = static_cast<std::int64_t>(host.size() * sizeof(float));
  Buffer buffer = backend.make_buffer(bytes);
  backend.copy_from_host(host.data(), buffer, bytes);
  return buffer;
}

Buffer gate_weights(const SweepPoint& point, int layer, Backend& backend) {
  const ModelShape& model = point.model;
  const std::int64_t count = model.num_experts * model.hidden_dim;
  Buffer gate = backend.make_buffer(count * bytes_of(DType::fp32));
  backend.fill(gate, gate_matrix(point.seed, layer, model.hidden_dim).stream(), 0, count,
               DType::fp32);
  return gate;
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

std::string kernel_refusal(const RankWork& work) {
  const GroupedGemmEntry& entry = GroupedGemmCatalog::instance().at(work.point.grouped_gemm);
  for (const GemmShape& shape : {gate_up_shape(work), down_shape(work)}) {
    if (const auto reason = entry.refuses(shape)) {
      return fmt::format("grouped_gemm {}: {}", entry.name, *reason);
    }
  }
  return "";
}

std::int64_t kernel_scratch_bytes(const RankWork& work, const GroupedGemmEntry& entry) {
  if (entry.scratch_bytes == nullptr) return 0;
  std::int64_t bytes = 0;
  for (const DispatchPlan& layer : work.dispatch) {
    bytes += entry.scratch_bytes(gate_up_shape(work), layer.rows_per_expert) +
             entry.scratch_bytes(down_shape(work), layer.rows_per_expert);
  }
  return bytes;
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
    const auto gate_up = [&](int local) {
      const int expert = experts[static_cast<std::size_t>(local)];
      return gate_up_matrix(point.seed, layer, expert, point.model.expert_io_dim).stream();
    };
    const auto down = [&](int local) {
      const int expert = experts[static_cast<std::size_t>(local)];
      return down_matrix(point.seed, layer, expert, point.model.ffn_dim).stream();
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
