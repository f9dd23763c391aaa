#include "pipeline/assignment_exchange.h"

namespace epsweep {
namespace {

bool is_identity(std::span<const std::int32_t> order) {
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i] != static_cast<std::int32_t>(i)) return false;
  }
  return true;
}

}  // namespace

AssignmentExchange::AssignmentExchange(const ExchangeContext& context)
    : context_(context), counts_(context.work) {
  const RankWork& work = context.work;
  const std::int64_t own = work.own_tokens().size() * work.point.model.top_k;
  const std::int64_t received = work.max_recv_rows();
  position_.resize(static_cast<std::size_t>(own));
  expert_order_.resize(static_cast<std::size_t>(received));
  const auto rows = [&](std::int64_t count) {
    return context.backend.make_buffer(count * context.row_bytes());
  };
  send_ = rows(own);
  returned_ = rows(own);
  recv_ = rows(received);
  by_expert_ = rows(received);
  ffn_out_ = rows(received);
  to_return_ = rows(received);
}

void AssignmentExchange::announce(int layer) {
  counts_.assign(context_.work, layer);
  context_.transport.exchange_counts(counts_.send_per_slot, counts_.recv_per_slot,
                                     context_.work.slots_of_rank);
  counts_.sum(context_.work);
}

void AssignmentExchange::pack(const Buffer& tokens, const Buffer& /*weights*/) {
  const ModelShape& model = context_.work.point.model;
  sort_by_slot(counts_.slot_of_assignment, counts_.send_per_slot, position_);
  context_.backend.token_ops().scatter_rows(context_.lane, tokens,
                                            model.hidden_dim * bytes_of(context_.work.point.dtype),
                                            model.top_k, position_, context_.row_bytes(), send_);
}

void AssignmentExchange::send() {
  context_.transport.all_to_all_v(
      context_.lane, send_, recv_,
      {.send = counts_.send_rows, .recv = counts_.recv_rows, .row_bytes = context_.row_bytes()});
}

// Rows come sorted by source rank; with one source that is expert order and nothing is copied.
const Buffer& AssignmentExchange::expert_input() {
  const auto order = std::span(expert_order_).first(expert_order().size());
  order_by_expert(counts_.recv_per_slot, context_.work.point.ep_size, context_.work.num_own_slots(),
                  order);
  regroup_ = !is_identity(order);
  if (!regroup_) return recv_;
  context_.backend.token_ops().gather_rows(context_.lane, recv_, order, context_.row_bytes(),
                                           by_expert_);
  return by_expert_;
}

Buffer& AssignmentExchange::expert_output() {
  return regroup_ ? ffn_out_ : to_return_;
}

void AssignmentExchange::collect() {
  if (!regroup_) return;
  context_.backend.token_ops().scatter_rows(context_.lane, ffn_out_, context_.row_bytes(), 1,
                                            expert_order(), context_.row_bytes(), to_return_);
}

void AssignmentExchange::send_back() {
  context_.transport.all_to_all_v(
      context_.lane, to_return_, returned_,
      {.send = counts_.recv_rows, .recv = counts_.send_rows, .row_bytes = context_.row_bytes()});
}

void AssignmentExchange::add_up(const Buffer& weights, Buffer& out) {
  const SweepPoint& point = context_.work.point;
  context_.backend.token_ops().weighted_reduce(context_.lane, point.dtype, point.model.top_k,
                                               position_, weights, point.model.expert_io_dim,
                                               returned_, out);
}

bool AssignmentExchange::counts_match_plan(int layer) const {
  return counts_.match(context_.work.dispatch[static_cast<std::size_t>(layer)]);
}

void AssignmentExchange::poison() {
  for (Buffer* buffer : {&send_, &recv_, &by_expert_, &ffn_out_, &to_return_, &returned_}) {
    context_.backend.poison(*buffer);
  }
}

}  // namespace epsweep
