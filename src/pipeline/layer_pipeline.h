// Executes the steps of one layer on a rank.
#pragma once

#include <variant>
#include <vector>

#include "device/backend.h"
#include "device/grouped_gemm.h"
#include "device/transport.h"
#include "pipeline/assignment_exchange.h"
#include "pipeline/expert_weights.h"
#include "pipeline/rank_exchange.h"
#include "pipeline/rank_work.h"
#include "pipeline/schedule.h"

namespace epsweep {

// What the grouped GEMMs of one layer did.
struct LayerGemmWork {
  GemmWork gate_up, down;
};

class LayerPipeline {
 public:
  // Allocates every buffer and fills the token rows; nothing allocates afterwards.
  LayerPipeline(const RankWork& work, Backend& backend, Transport& transport,
                ExpertWeights& weights);

  // Enqueue a layer with a routing of its own (SweepPoint::num_routings), or one stage of it:
  // stages of a layer in order, layer after layer. Nothing between two layers waits for the host
  // but what the transport needs.
  void run_layer(int routing);
  void run_stage(int routing, Stage stage);
  // What it did when it ran last.
  const LayerGemmWork& gemm_work(int routing) const {
    return gemm_work_[static_cast<std::size_t>(routing)];
  }

  // From now on run_layer() and run_stage() enqueue captured pieces, the whole layer and each of
  // its stages. Shapes and addresses are frozen in them, which is right where the routing is
  // prescribed and the transport never asks the host. The layer must have run before: a
  // capture may not allocate.
  void capture_layer(int routing);

  Lane& lane() { return *lane_; }
  // Until everything that layers enqueued is done. Marks may be read then.
  void wait() { lane_->synchronize(); }

  // Lets the kernels make what the layers' row counts need.
  void warm_kernels();
  // Overwrites every intermediate and output with NaN, so that what a layer does not write shows.
  void poison();
  // Whether the counts that were exchanged are those the dispatch plan says, and what travels with
  // the rows.
  bool counts_match_plan(int routing) const;
  // fp32 [own tokens][expert_io_dim] of the layer that ran last.
  std::vector<float> output() const;
  // What the router's own top-k chose in the last layer run: [own tokens][top_k]. Not used.
  std::vector<std::int32_t> own_choice() const;

 private:
  using Exchange = std::variant<AssignmentExchange, RankExchange>;
  static Exchange make_exchange(const ExchangeContext& context);

  void enqueue_stage(int routing, Stage stage);
  template <ExchangePath Path>
  void run_step(Path& path, int routing, Stage stage);
  template <ExchangePath Path>
  void expert_ffn(Path& path, int routing);
  void router(int routing);
  const Buffer& tokens_of(int routing) const {
    return tokens_[static_cast<std::size_t>(routing / work_.point.layers)];
  }
  LayerWeights& weights_of(int routing) const {
    return weights_.layers[static_cast<std::size_t>(work_.point.layer_of(routing))];
  }

  const RankWork& work_;
  Backend& backend_;
  Transport& transport_;
  ExpertWeights& weights_;
  std::unique_ptr<Lane> lane_;
  std::vector<Step> schedule_;
  RouterOp router_op_;
  std::vector<LayerGemmWork> gemm_work_;  // [routings]
  struct Captured {
    std::unique_ptr<Replay> layer;
    std::vector<std::unique_ptr<Replay>> stages;  // [stages], or none
  };
  std::vector<Captured> captured_;  // [routings]

  std::vector<LayerIndices> indices_;
  std::vector<Buffer> tokens_;  // [vary_routing]
  Buffer own_choice_, weights_of_choice_, gate_up_, activated_, out_;
  Exchange exchange_;
};

}  // namespace epsweep
