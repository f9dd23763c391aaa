#include "pipeline/layer_pipeline.h"

#include <algorithm>

#include "workload/payload.h"

namespace epsweep {
namespace {

ScoreFunction score_function(Scoring scoring) {
  switch (scoring) {
    case Scoring::softmax:
      return ScoreFunction::softmax;
    case Scoring::topk_softmax:
      return ScoreFunction::topk_softmax;
    case Scoring::sigmoid:
      return ScoreFunction::sigmoid;
    case Scoring::sqrtsoftplus:
      break;
  }
  return ScoreFunction::sqrtsoftplus;
}

RouterOp router_op(const RankWork& work) {
  const ModelShape& model = work.point.model;
  return {.num_tokens = work.own_tokens().size(),
          .hidden_dim = model.hidden_dim,
          .num_experts = model.num_experts,
          .top_k = model.top_k,
          .dtype = row_dtype(work.point.dtype),
          .score = score_function(model.router.scoring),
          .renormalize = model.router.renormalize,
          .scale = static_cast<float>(model.router.scale),
          .groups = model.router.group_limit(),
          .select_by_logit = model.router.selects_by_logit()};
}

// Input rows of the rank's own tokens, addressed by their global index.
Buffer make_tokens(const RankWork& work, Backend& backend) {
  const TokenRange own = work.own_tokens();
  const std::int64_t hidden = work.point.model.hidden_dim;
  const DType dtype = row_dtype(work.point.dtype);
  Buffer buffer = backend.make_buffer(own.size() * hidden * bytes_of(dtype));
  backend.fill(buffer, token_matrix(work.point.seed, hidden).stream(), own.begin * hidden,
               own.size() * hidden, dtype);
  return buffer;
}

}  // namespace

LayerPipeline::Exchange LayerPipeline::make_exchange(const ExchangeContext& context) {
  if (context.work.point.exchange_unit == ExchangeUnit::rank) return RankExchange(context);
  return AssignmentExchange(context);
}

LayerPipeline::LayerPipeline(const RankWork& work, Backend& backend, Transport& transport,
                             ExpertWeights& weights)
    : work_(work),
      backend_(backend),
      weights_(weights),
      lane_(backend.make_lane()),
      schedule_(serial_schedule()),
      router_op_(router_op(work)),
      gemm_work_(work.dispatch.size()),
      captured_(work.dispatch.size()),
      indices_(make_layer_indices(work, backend)),
      tokens_(make_tokens(work, backend)),
      exchange_(make_exchange({.work = work,
                               .backend = backend,
                               .transport = transport,
                               .lane = *lane_,
                               .indices = indices_})) {
  const ModelShape& model = work.point.model;
  const std::int64_t tokens = work.own_tokens().size(), received = work.max_recv_rows();
  const std::int64_t element = bytes_of(row_dtype(work.point.dtype));
  own_choice_ = backend.make_buffer(tokens * model.top_k * 4);
  weights_of_choice_ = backend.make_buffer(tokens * model.top_k * 4);
  gate_up_ = backend.make_buffer(received * model.gate_up_cols() * element);
  activated_ = backend.make_buffer(received * model.ffn_dim * element);
  out_ = backend.make_buffer(tokens * model.expert_io_dim * 4);
}

void LayerPipeline::warm_kernels() {
  for (std::size_t layer = 0; layer < work_.dispatch.size(); ++layer) {
    weights_.layers[layer].gate_up->warm(work_.dispatch[layer].rows_per_expert);
    weights_.layers[layer].down->warm(work_.dispatch[layer].rows_per_expert);
  }
}

void LayerPipeline::poison() {
  lane_->synchronize();
  for (Buffer* buffer : {&own_choice_, &weights_of_choice_, &gate_up_, &activated_, &out_}) {
    backend_.poison(*buffer);
  }
  std::visit([](auto& path) { path.poison(); }, exchange_);
}

bool LayerPipeline::counts_match_plan(int layer) const {
  lane_->synchronize();
  return std::visit([layer](const auto& path) { return path.counts_match_plan(layer); }, exchange_);
}

std::vector<float> LayerPipeline::output() const {
  lane_->synchronize();
  std::vector<float> host(static_cast<std::size_t>(out_.bytes()) / sizeof(float));
  backend_.copy_to_host(out_, host.data(), out_.bytes());
  return host;
}

std::vector<std::int32_t> LayerPipeline::own_choice() const {
  lane_->synchronize();
  std::vector<std::int32_t> host(static_cast<std::size_t>(own_choice_.bytes()) /
                                 sizeof(std::int32_t));
  backend_.copy_to_host(own_choice_, host.data(), own_choice_.bytes());
  return host;
}

void LayerPipeline::capture_layer(int layer) {
  Captured captured;
  for (const Step& step : schedule_) {
    lane_->begin_capture();
    enqueue_stage(layer, step.stage);
    captured.stages.push_back(lane_->end_capture());
  }
  lane_->begin_capture();
  for (const Step& step : schedule_) enqueue_stage(layer, step.stage);
  captured.layer = lane_->end_capture();
  captured_[static_cast<std::size_t>(layer)] = std::move(captured);
}

void LayerPipeline::run_layer(int layer) {
  const Captured& captured = captured_[static_cast<std::size_t>(layer)];
  if (captured.layer != nullptr) return captured.layer->enqueue(*lane_);
  for (const Step& step : schedule_) enqueue_stage(layer, step.stage);
}

void LayerPipeline::run_stage(int layer, Stage stage) {
  const Captured& captured = captured_[static_cast<std::size_t>(layer)];
  if (captured.stages.empty()) return enqueue_stage(layer, stage);
  captured.stages[static_cast<std::size_t>(stage)]->enqueue(*lane_);
}

void LayerPipeline::enqueue_stage(int layer, Stage stage) {
  // The names are literals, so they end with a zero.
  lane_->begin_range(to_string(stage).data());
  std::visit([&](auto& path) { run_step(path, layer, stage); }, exchange_);
  lane_->end_range();
}

template <ExchangePath Path>
void LayerPipeline::run_step(Path& path, int layer, Stage stage) {
  switch (stage) {
    case Stage::router:
      return router(layer);
    case Stage::count_exchange:
      return path.announce(layer);
    case Stage::permute:
      return path.pack(tokens_, weights_of_choice_);
    case Stage::dispatch:
      return path.send();
    case Stage::expert_ffn:
      return expert_ffn(path, layer);
    case Stage::combine:
      return path.send_back();
    case Stage::unpermute:
      return path.add_up(weights_of_choice_, out_);
  }
}

void LayerPipeline::router(int layer) {
  const auto at = static_cast<std::size_t>(layer);
  const Buffer& bias = weights_.layers[at].selection_bias;
  router_op_.selection_bias = bias.bytes() > 0 ? &bias : nullptr;
  backend_.token_ops().router(*lane_, router_op_, tokens_, weights_.layers[at].gate,
                              indices_[at].prescribed, own_choice_, weights_of_choice_);
}

// Putting rows into expert order, and results into the order they go back in, is part of the stage.
template <ExchangePath Path>
void LayerPipeline::expert_ffn(Path& path, int layer) {
  const ModelShape& model = work_.point.model;
  LayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  const RowCounts& counts = path.counts();
  const Buffer& rows = path.expert_input();
  LayerGemmWork& work = gemm_work_[static_cast<std::size_t>(layer)];
  work.gate_up = weights.gate_up->run(*lane_, rows, gate_up_, counts.rows_per_expert);
  backend_.token_ops().activation(
      *lane_, model.gemms_per_expert == 3 ? Activation::swiglu : Activation::squared_relu,
      row_dtype(work_.point.dtype), counts.num_recv_rows, model.ffn_dim, gate_up_, activated_);
  work.down = weights.down->run(*lane_, activated_, path.expert_output(), counts.rows_per_expert);
  path.collect();
}

}  // namespace epsweep
