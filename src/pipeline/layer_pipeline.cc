#include "pipeline/layer_pipeline.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
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
          .dtype = work.point.dtype,
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
  const std::int64_t row_bytes = hidden * bytes_of(work.point.dtype);
  const PayloadMatrix matrix = token_matrix(work.point.seed, hidden);
  std::vector<std::uint16_t> half(static_cast<std::size_t>(hidden));
  std::vector<float> full(static_cast<std::size_t>(hidden));
  std::vector<std::byte> host(static_cast<std::size_t>(own.size() * row_bytes));
  for (std::int64_t token = own.begin; token < own.end; ++token) {
    std::byte* row = host.data() + (token - own.begin) * row_bytes;
    if (work.point.dtype == DType::bf16) {
      matrix.fill_row(token, std::span(half));
      std::copy_n(reinterpret_cast<const std::byte*>(half.data()), row_bytes, row);
    } else {
      matrix.fill_row(token, std::span(full));
      std::copy_n(reinterpret_cast<const std::byte*>(full.data()), row_bytes, row);
    }
  }
  const auto bytes = static_cast<std::int64_t>(host.size());
  Buffer buffer = backend.make_buffer(bytes);
  backend.copy_from_host(host.data(), buffer, bytes);
  return buffer;
}

bool is_identity(std::span<const std::int32_t> order) {
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i] != static_cast<std::int32_t>(i)) return false;
  }
  return true;
}

}  // namespace

LayerPipeline::LayerPipeline(const RankWork& work, Backend& backend, Transport& transport,
                             ExpertWeights& weights)
    : work_(work),
      backend_(backend),
      transport_(transport),
      weights_(weights),
      lane_(backend.make_lane()),
      schedule_(serial_schedule()),
      router_op_(router_op(work)),
      row_bytes_(work.point.model.expert_io_dim * bytes_of(work.point.dtype)) {
  const ModelShape& model = work.point.model;
  const auto num_ranks = static_cast<std::size_t>(work.point.ep_size);
  const auto num_local = static_cast<std::size_t>(work.num_own_slots());
  const std::int64_t own = work.own_tokens().size() * model.top_k;
  const std::int64_t received = work.max_recv_rows();
  send_counts_.resize(work.placements.front().expert_of_slot.size());
  recv_counts_.resize(num_ranks * num_local);
  send_rows_.resize(num_ranks);
  recv_rows_.resize(num_ranks);
  rows_per_expert_.resize(num_local);
  slot_of_assignment_.resize(static_cast<std::size_t>(own));
  position_.resize(static_cast<std::size_t>(own));
  expert_order_.resize(static_cast<std::size_t>(received));

  const std::int64_t element = bytes_of(work.point.dtype);
  tokens_ = make_tokens(work, backend);
  own_choice_ = backend.make_buffer(own * 4);
  weights_of_choice_ = backend.make_buffer(own * 4);
  send_ = backend.make_buffer(own * row_bytes_);
  returned_ = backend.make_buffer(own * row_bytes_);
  recv_ = backend.make_buffer(received * row_bytes_);
  by_expert_ = backend.make_buffer(received * row_bytes_);
  gate_up_ = backend.make_buffer(received * model.gate_up_cols() * element);
  activated_ = backend.make_buffer(received * model.ffn_dim * element);
  ffn_out_ = backend.make_buffer(received * row_bytes_);
  to_return_ = backend.make_buffer(received * row_bytes_);
  out_ = backend.make_buffer(work.own_tokens().size() * model.expert_io_dim * 4);
}

void LayerPipeline::warm_kernels() {
  for (std::size_t layer = 0; layer < work_.dispatch.size(); ++layer) {
    weights_.layers[layer].gate_up->warm(work_.dispatch[layer].rows_per_expert);
    weights_.layers[layer].down->warm(work_.dispatch[layer].rows_per_expert);
  }
}

void LayerPipeline::poison() {
  for (Buffer* buffer : {&own_choice_, &weights_of_choice_, &send_, &returned_, &recv_, &by_expert_,
                         &gate_up_, &activated_, &ffn_out_, &to_return_, &out_}) {
    backend_.poison(*buffer);
  }
}

bool LayerPipeline::counts_match_plan(int layer) const {
  const DispatchPlan& plan = work_.dispatch[static_cast<std::size_t>(layer)];
  return std::ranges::equal(recv_counts_, plan.recv_rows_per_slot) &&
         std::ranges::equal(send_rows_, plan.send_rows) &&
         std::ranges::equal(recv_rows_, plan.recv_rows);
}

std::vector<float> LayerPipeline::output() const {
  std::vector<float> host(static_cast<std::size_t>(out_.bytes()) / sizeof(float));
  backend_.copy_to_host(out_, host.data(), out_.bytes());
  return host;
}

std::vector<std::int32_t> LayerPipeline::own_choice() const {
  std::vector<std::int32_t> host(static_cast<std::size_t>(own_choice_.bytes()) /
                                 sizeof(std::int32_t));
  backend_.copy_to_host(own_choice_, host.data(), own_choice_.bytes());
  return host;
}

LayerGemmWork LayerPipeline::run_layer(int layer, Timeline& timeline, MarkId first_mark) {
  MarkId mark = first_mark;
  for (const Step& step : schedule_) {
    timeline.mark(*lane_, mark++);
    run_step(layer, step.stage);
    timeline.mark(*lane_, mark++);
  }
  return gemm_work_;
}

void LayerPipeline::run_step(int layer, Stage stage) {
  switch (stage) {
    case Stage::router:
      return router(layer);
    case Stage::count_exchange:
      return count_exchange(layer);
    case Stage::permute:
      return permute();
    case Stage::dispatch:
      return dispatch();
    case Stage::expert_ffn:
      return expert_ffn(layer);
    case Stage::combine:
      return combine();
    case Stage::unpermute:
      return unpermute();
  }
}

void LayerPipeline::router(int layer) {
  const auto at = static_cast<std::size_t>(layer);
  const Buffer& bias = weights_.layers[at].selection_bias;
  router_op_.selection_bias = bias.bytes() > 0 ? &bias : nullptr;
  backend_.token_ops().router(*lane_, router_op_, tokens_, weights_.layers[at].gate,
                              work_.dispatch[at].expert_of_assignment, own_choice_,
                              weights_of_choice_);
}

// The counts go to the host here on every backend: a variable-size exchange cannot start without.
void LayerPipeline::count_exchange(int layer) {
  const DispatchPlan& plan = work_.dispatch[static_cast<std::size_t>(layer)];
  lane_->synchronize();
  std::ranges::fill(send_counts_, 0);
  assign_slots(work_.placements[static_cast<std::size_t>(layer)], plan.expert_of_assignment,
               plan.tokens.begin, plan.top_k, slot_of_assignment_);
  count_slots(slot_of_assignment_, send_counts_);
  transport_.exchange_counts(send_counts_, recv_counts_, work_.slots_of_rank);
  const auto num_local = static_cast<std::ptrdiff_t>(rows_per_expert_.size());
  auto sent = send_counts_.begin();
  auto received = recv_counts_.begin();
  std::ranges::fill(rows_per_expert_, 0);
  for (std::size_t rank = 0; rank < send_rows_.size(); ++rank) {
    send_rows_[rank] = std::accumulate(sent, sent + work_.slots_of_rank[rank], std::int64_t{0});
    recv_rows_[rank] = std::accumulate(received, received + num_local, std::int64_t{0});
    std::transform(received, received + num_local, rows_per_expert_.begin(),
                   rows_per_expert_.begin(), std::plus<>());
    sent += work_.slots_of_rank[rank];
    received += num_local;
  }
  num_recv_rows_ = std::accumulate(recv_rows_.begin(), recv_rows_.end(), std::int64_t{0});
  EPS_EXPECT(num_recv_rows_ <= static_cast<std::int64_t>(expert_order_.size()),
             "more rows announced than the receive buffer holds");
}

void LayerPipeline::permute() {
  sort_by_slot(slot_of_assignment_, send_counts_, position_);
  const ModelShape& model = work_.point.model;
  backend_.token_ops().scatter_rows(*lane_, tokens_, model.hidden_dim * bytes_of(work_.point.dtype),
                                    model.top_k, position_, row_bytes_, send_);
}

void LayerPipeline::dispatch() {
  transport_.all_to_all_v(*lane_, send_, recv_,
                          {.send = send_rows_, .recv = recv_rows_, .row_bytes = row_bytes_});
}

// Rows come sorted by source rank and are put into expert order first, and back afterwards; with
// one source both orders are the same and nothing is copied.
void LayerPipeline::expert_ffn(int layer) {
  const ModelShape& model = work_.point.model;
  TokenOps& ops = backend_.token_ops();
  LayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  const auto num_local = static_cast<int>(rows_per_expert_.size());
  const auto order = std::span(expert_order_).first(static_cast<std::size_t>(num_recv_rows_));
  order_by_expert(recv_counts_, work_.point.ep_size, num_local, order);
  const bool regroup = !is_identity(order);
  if (regroup) ops.gather_rows(*lane_, recv_, order, row_bytes_, by_expert_);
  gemm_work_.gate_up =
      weights.gate_up->run(*lane_, regroup ? by_expert_ : recv_, gate_up_, rows_per_expert_);
  ops.activation(*lane_,
                 model.gemms_per_expert == 3 ? Activation::swiglu : Activation::squared_relu,
                 work_.point.dtype, num_recv_rows_, model.ffn_dim, gate_up_, activated_);
  gemm_work_.down =
      weights.down->run(*lane_, activated_, regroup ? ffn_out_ : to_return_, rows_per_expert_);
  if (regroup) {
    ops.scatter_rows(*lane_, ffn_out_, row_bytes_, 1, order, row_bytes_, to_return_);
  }
}

void LayerPipeline::combine() {
  transport_.all_to_all_v(*lane_, to_return_, returned_,
                          {.send = recv_rows_, .recv = send_rows_, .row_bytes = row_bytes_});
}

void LayerPipeline::unpermute() {
  const ModelShape& model = work_.point.model;
  backend_.token_ops().weighted_reduce(*lane_, work_.point.dtype, model.top_k, position_,
                                       weights_of_choice_, model.expert_io_dim, returned_, out_);
}

}  // namespace epsweep
