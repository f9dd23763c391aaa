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

// Input rows of the rank's own tokens in each step, addressed by their global index.
std::vector<Buffer> make_tokens(const RankWork& work, Backend& backend) {
  const TokenRange own = work.own_tokens();
  const std::int64_t hidden = work.point.model.hidden_dim;
  const DType dtype = row_dtype(work.point.dtype);
  std::vector<Buffer> steps;
  for (int step = 0; step < work.point.vary_routing; ++step) {
    steps.push_back(backend.make_buffer(own.size() * hidden * bytes_of(dtype)));
    backend.fill(steps.back(),
                 token_matrix(work.point.seed, hidden, work.point.step + step).stream(),
                 own.begin * hidden, own.size() * hidden, dtype);
  }
  return steps;
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
      transport_(transport),
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
  for (int routing = 0; routing < work_.point.num_routings(); ++routing) {
    const DispatchPlan& plan = work_.dispatch[static_cast<std::size_t>(routing)];
    weights_of(routing).gate_up->warm(plan.rows_per_expert);
    weights_of(routing).down->warm(plan.rows_per_expert);
  }
}

void LayerPipeline::poison() {
  lane_->synchronize();
  for (Buffer* buffer : {&own_choice_, &weights_of_choice_, &gate_up_, &activated_, &out_}) {
    backend_.poison(*buffer);
  }
  std::visit([](auto& path) { path.poison(); }, exchange_);
}

bool LayerPipeline::counts_match_plan(int routing) const {
  lane_->synchronize();
  return std::visit([routing](const auto& path) { return path.counts_match_plan(routing); },
                    exchange_);
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

void LayerPipeline::capture_layer(int routing) {
  Captured captured;
  for (const Step& step : schedule_) {
    lane_->begin_capture();
    enqueue_stage(routing, step.stage);
    captured.stages.push_back(lane_->end_capture());
  }
  lane_->begin_capture();
  for (const Step& step : schedule_) enqueue_stage(routing, step.stage);
  captured.layer = lane_->end_capture();
  captured_[static_cast<std::size_t>(routing)] = std::move(captured);
}

void LayerPipeline::run_layer(int routing) {
  const Captured& captured = captured_[static_cast<std::size_t>(routing)];
  if (captured.layer != nullptr) return captured.layer->enqueue(*lane_);
  for (const Step& step : schedule_) enqueue_stage(routing, step.stage);
}

void LayerPipeline::run_stage(int routing, Stage stage) {
  const Captured& captured = captured_[static_cast<std::size_t>(routing)];
  if (captured.stages.empty()) return enqueue_stage(routing, stage);
  captured.stages[static_cast<std::size_t>(stage)]->enqueue(*lane_);
}

void LayerPipeline::enqueue_stage(int routing, Stage stage) {
  // The names are literals, so they end with a zero.
  lane_->begin_range(to_string(stage).data());
  std::visit([&](auto& path) { run_step(path, routing, stage); }, exchange_);
  lane_->end_range();
}

template <ExchangePath Path>
void LayerPipeline::run_step(Path& path, int routing, Stage stage) {
  switch (stage) {
    case Stage::router:
      return router(routing);
    case Stage::count_exchange:
      transport_.begin_layer(routing);
      return path.announce(routing);
    case Stage::permute:
      return path.pack(tokens_of(routing), weights_of_choice_);
    case Stage::dispatch:
      return path.send();
    case Stage::expert_ffn:
      return expert_ffn(path, routing);
    case Stage::combine:
      return path.send_back();
    case Stage::unpermute:
      return path.add_up(weights_of_choice_, out_);
  }
}

void LayerPipeline::router(int routing) {
  const LayerWeights& weights = weights_of(routing);
  const Buffer& bias = weights.selection_bias;
  router_op_.selection_bias = bias.bytes() > 0 ? &bias : nullptr;
  backend_.token_ops().router(*lane_, router_op_, tokens_of(routing), weights.gate,
                              indices_[static_cast<std::size_t>(routing)].prescribed, own_choice_,
                              weights_of_choice_);
}

// Putting rows into expert order, and results into the order they go back in, is part of the stage.
template <ExchangePath Path>
void LayerPipeline::expert_ffn(Path& path, int routing) {
  const ModelShape& model = work_.point.model;
  LayerWeights& weights = weights_of(routing);
  const RowCounts& counts = path.counts();
  const Buffer& rows = path.expert_input();
  LayerGemmWork& work = gemm_work_[static_cast<std::size_t>(routing)];
  work.gate_up = weights.gate_up->run(*lane_, rows, gate_up_, counts.rows_per_expert);
  backend_.token_ops().activation(
      *lane_, model.gemms_per_expert == 3 ? Activation::swiglu : Activation::squared_relu,
      row_dtype(work_.point.dtype), counts.num_recv_rows, model.ffn_dim, gate_up_, activated_);
  work.down = weights.down->run(*lane_, activated_, path.expert_output(), counts.rows_per_expert);
  path.collect();
}

}  // namespace epsweep
