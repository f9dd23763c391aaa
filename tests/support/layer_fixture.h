// Small layers for tests: a point, and everything that runs it on one rank.
#pragma once

#include <cstring>
#include <functional>
#include <memory>

#include "cpu/cpu_backend.h"
#include "device/grouped_gemm.h"
#include "device/transport.h"
#include "pipeline/expert_weights.h"
#include "pipeline/layer_pipeline.h"
#include "pipeline/oracle.h"
#include "pipeline/rank_work.h"

namespace epsweep {

inline SweepPoint layer_point(int ep_size = 1, std::int64_t tokens = 24) {
  SweepPoint point;
  point.model = {.name = "test",
                 .hidden_dim = 64,
                 .expert_io_dim = 64,
                 .ffn_dim = 32,
                 .num_experts = 12,
                 .top_k = 3,
                 .num_moe_layers = 1};
  point.ep_size = ep_size;
  point.concurrency = {
      .mode = ConcurrencyMode::fixed_global, .tokens = tokens, .tokens_per_rank = {}};
  point.routing = {.distribution = "uniform", .params = {}, .file = {}};
  point.placement = "contiguous";
  point.transport = "pairwise";
  point.grouped_gemm = "reference";
  point.seed = 11;
  return point;
}

// EP1 without MPI: what is sent is received.
class LocalTransport final : public Transport {
 public:
  void exchange_counts(Lane& /*lane*/, const Buffer& send, Buffer& recv,
                       std::span<const int> /*slots_of_rank*/) override {
    std::ranges::copy(send.as<std::int64_t>(), recv.as<std::int64_t>().begin());
  }
  void all_to_all_v(Lane& /*lane*/, const Buffer& send, Buffer& recv,
                    const ExchangeRows& rows) override {
    if (rows.send[0] == 0) return;
    std::memcpy(recv.data(), send.data(), static_cast<std::size_t>(rows.send[0] * rows.row_bytes));
  }
  void close() override {}
};

// Transports that move rows between ranks by themselves.
inline std::vector<std::string> moving_transports() {
  std::vector<std::string> names = TransportCatalog::instance().names();
  std::erase_if(names, [](const std::string& name) {
    return TransportCatalog::instance().at(name).decorate != nullptr;
  });
  return names;
}

inline GemmMaker catalog_gemm(const SweepPoint& point) {
  return [name = point.grouped_gemm](const GemmShape& shape) {
    return GroupedGemmCatalog::instance().at(name).make(shape, 1);
  };
}

// Outputs of all layers of one rank in every step, each from poisoned buffers:
// [routings][own tokens * io].
struct LayerOutputs {
  RankWork work;
  std::vector<std::vector<float>> of_layer;
  std::vector<std::vector<std::int32_t>> own_choice;
  bool counts_match = true;
};

inline LayerOutputs run_layers(const SweepPoint& point, int ep_rank, Transport& transport,
                               const GemmMaker& make_gemm, Backend& backend) {
  LayerOutputs outputs{.work = plan_rank_work(point, ep_rank),
                       .of_layer = {},
                       .own_choice = {},
                       .counts_match = true};
  ExpertWeights weights = prepare_weights(outputs.work, backend, make_gemm);
  LayerPipeline pipeline(outputs.work, backend, transport, weights);
  pipeline.warm_kernels();
  for (int layer = 0; layer < point.num_routings(); ++layer) {
    pipeline.poison();
    pipeline.run_layer(layer);
    outputs.counts_match = outputs.counts_match && pipeline.counts_match_plan(layer);
    outputs.of_layer.push_back(pipeline.output());
    outputs.own_choice.push_back(pipeline.own_choice());
  }
  return outputs;
}

inline LayerOutputs run_layers(const SweepPoint& point, int ep_rank, Transport& transport,
                               const GemmMaker& make_gemm) {
  const auto backend = make_cpu_backend({.num_threads = 1, .memory_bytes = 0, .local_rank = 0});
  return run_layers(point, ep_rank, transport, make_gemm, *backend);
}

inline OracleResult check_outputs(const LayerOutputs& outputs) {
  Oracle oracle(outputs.work);
  OracleResult result;
  for (std::size_t layer = 0; layer < outputs.of_layer.size(); ++layer) {
    result.merge(oracle.check(static_cast<int>(layer), outputs.of_layer[layer]));
  }
  return result;
}

}  // namespace epsweep
