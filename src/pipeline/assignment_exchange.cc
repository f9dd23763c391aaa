#include "pipeline/assignment_exchange.h"

namespace epsweep {
namespace {

// Whether rows by (source, local expert) are in the order of (local expert, source): no pair with
// rows comes before one that it follows in the other order.
bool is_expert_order(std::span<const std::int64_t> rows, std::size_t num_sources) {
  const std::size_t num_local = rows.size() / num_sources;
  std::size_t last = 0;
  for (std::size_t local = 0; local < num_local; ++local) {
    for (std::size_t source = 0; source < num_sources; ++source) {
      const std::size_t pair = source * num_local + local;
      if (rows[pair] == 0) continue;
      if (pair < last) return false;
      last = pair;
    }
  }
  return true;
}

}  // namespace

AssignmentExchange::AssignmentExchange(const ExchangeContext& context)
    : context_(context), counts_(context.work) {
  const RankWork& work = context.work;
  const std::int64_t own = work.own_tokens().size() * work.point.model.top_k;
  const std::int64_t received = work.max_recv_rows();
  const auto ints = [&](std::int64_t count, std::int64_t bytes) {
    return context.backend.make_buffer(count * bytes);
  };
  send_counts_ = ints(std::ssize(counts_.send_per_slot), sizeof(std::int64_t));
  recv_counts_ = ints(std::ssize(counts_.recv_per_slot), sizeof(std::int64_t));
  slots_ = ints(own, sizeof(std::int32_t));
  position_ = ints(own, sizeof(std::int32_t));
  expert_order_ = ints(received, sizeof(std::int32_t));
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

SlotSort AssignmentExchange::slot_sort() const {
  return {.num_slots = static_cast<int>(counts_.send_per_slot.size()),
          .assignments = position().count};
}

RowIndex AssignmentExchange::position() const {
  const RankWork& work = context_.work;
  return {.buffer = &position_, .count = work.own_tokens().size() * work.point.model.top_k};
}

void AssignmentExchange::announce(int layer) {
  const LayerIndices& indices = context_.indices[static_cast<std::size_t>(layer)];
  TokenOps& ops = context_.backend.token_ops();
  ops.assign_slots(context_.lane,
                   {.first_of_expert = &indices.first_of_expert,
                    .slots_by_expert = &indices.slots_by_expert,
                    .first_token = context_.work.own_tokens().begin,
                    .top_k = context_.work.point.model.top_k,
                    .assignments = position().count},
                   indices.prescribed, slots_);
  ops.count_slots(context_.lane, slot_sort(), slots_, send_counts_);
  context_.transport.exchange_counts(context_.lane, send_counts_, recv_counts_,
                                     context_.work.slots_of_rank);
  context_.backend.copy_to_host(send_counts_, counts_.send_per_slot.data(), send_counts_.bytes());
  context_.backend.copy_to_host(recv_counts_, counts_.recv_per_slot.data(), recv_counts_.bytes());
  counts_.sum(context_.work);
}

void AssignmentExchange::pack(const Buffer& tokens, const Buffer& /*weights*/) {
  const ModelShape& model = context_.work.point.model;
  TokenOps& ops = context_.backend.token_ops();
  ops.sort_by_slot(context_.lane, slot_sort(), slots_, send_counts_, position_);
  ops.scatter_rows(context_.lane, tokens, model.hidden_dim * bytes_of(context_.work.point.dtype),
                   model.top_k, position(), context_.row_bytes(), send_);
}

void AssignmentExchange::send() {
  context_.transport.all_to_all_v(
      context_.lane, send_, recv_,
      {.send = counts_.send_rows, .recv = counts_.recv_rows, .row_bytes = context_.row_bytes()});
}

// Rows come sorted by source rank; with one source that is expert order and nothing is copied.
const Buffer& AssignmentExchange::expert_input() {
  const int num_sources = context_.work.point.ep_size;
  regroup_ = !is_expert_order(counts_.recv_per_slot, static_cast<std::size_t>(num_sources));
  if (!regroup_) return recv_;
  TokenOps& ops = context_.backend.token_ops();
  ops.order_by_expert(
      context_.lane,
      {.num_sources = num_sources, .num_local_experts = context_.work.num_own_slots()},
      recv_counts_, expert_order_);
  ops.gather_rows(context_.lane, recv_, expert_order(), context_.row_bytes(), by_expert_);
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
                                               position(), weights, point.model.expert_io_dim,
                                               returned_, out);
}

bool AssignmentExchange::counts_match_plan(int layer) const {
  return counts_.match(context_.work.dispatch[static_cast<std::size_t>(layer)]);
}

void AssignmentExchange::poison() {
  for (Buffer* buffer : {&slots_, &position_, &expert_order_, &send_, &recv_, &by_expert_,
                         &ffn_out_, &to_return_, &returned_}) {
    context_.backend.poison(*buffer);
  }
}

}  // namespace epsweep
