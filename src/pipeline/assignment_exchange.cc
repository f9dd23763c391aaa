#include "pipeline/assignment_exchange.h"

#include <algorithm>

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
  make_buffers();
  if (fixed()) make_sections();
}

void AssignmentExchange::make_buffers() {
  const RankWork& work = context_.work;
  const std::int64_t own = position().count, received = work.max_recv_rows();
  const auto ints = [&](std::int64_t count, std::int64_t bytes) {
    return context_.backend.make_buffer(count * bytes);
  };
  send_counts_ = ints(std::ssize(counts_.send_per_slot), sizeof(std::int64_t));
  recv_counts_ = ints(std::ssize(counts_.recv_per_slot), sizeof(std::int64_t));
  slots_ = ints(own, sizeof(std::int32_t));
  position_ = ints(own, sizeof(std::int32_t));
  expert_order_ = ints(received, sizeof(std::int32_t));
  const auto rows = [&](std::int64_t count) {
    return context_.backend.make_buffer(count * context_.row_bytes());
  };
  const std::int64_t sections = work.point.ep_size * work.capacity_rows;
  send_ = rows(fixed() ? sections : own);
  returned_ = rows(fixed() ? sections : own);
  recv_ = rows(fixed() ? sections : received);
  to_return_ = rows(fixed() ? sections : received);
  by_expert_ = rows(received);
  ffn_out_ = rows(received);
}

// Layers differ in which experts a rank's slots hold, not in whose slots they are.
void AssignmentExchange::make_sections() {
  const Placement& placement = context_.work.placements.front();
  const auto upload = [&](const std::vector<int>& values) {
    HostIndex index(std::ssize(values), context_.backend);
    std::ranges::copy(values, index.host.begin());
    index.upload(std::ssize(values), context_.backend);
    return index.take_device();
  };
  rank_of_slot_ = upload(placement.rank_of_slot);
  first_slot_of_rank_ = upload(placement.first_slot_of_rank);
}

SlotSort AssignmentExchange::slot_sort() const {
  return {.num_slots = static_cast<int>(counts_.send_per_slot.size()),
          .assignments = position().count,
          .capacity = context_.work.capacity_rows,
          .rank_of_slot = &rank_of_slot_,
          .first_slot_of_rank = &first_slot_of_rank_};
}

RowIndex AssignmentExchange::position() const {
  const RankWork& work = context_.work;
  return {.buffer = &position_, .count = work.own_tokens().size() * work.point.model.top_k};
}

void AssignmentExchange::announce(int routing) {
  const LayerIndices& indices = context_.indices[static_cast<std::size_t>(routing)];
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
  if (fixed()) return counts_.assume(context_.work.dispatch[static_cast<std::size_t>(routing)]);
  context_.backend.copy_to_host(send_counts_, counts_.send_per_slot.data(), send_counts_.bytes());
  context_.backend.copy_to_host(recv_counts_, counts_.recv_per_slot.data(), recv_counts_.bytes());
  counts_.sum(context_.work);
}

void AssignmentExchange::pack(const Buffer& tokens, const Buffer& /*weights*/) {
  const ModelShape& model = context_.work.point.model;
  TokenOps& ops = context_.backend.token_ops();
  ops.sort_by_slot(context_.lane, slot_sort(), slots_, send_counts_, position_);
  ops.scatter_rows(context_.lane, tokens,
                   model.hidden_dim * bytes_of(row_dtype(context_.work.point.dtype)), model.top_k,
                   position(), context_.row_bytes(), send_);
}

void AssignmentExchange::send() {
  context_.transport.all_to_all_v(context_.lane, send_, recv_,
                                  {.send = counts_.send_rows,
                                   .recv = counts_.recv_rows,
                                   .row_bytes = context_.row_bytes(),
                                   .capacity = context_.work.capacity_rows});
}

// Rows come sorted by source rank; with one source that is expert order and nothing is copied.
const Buffer& AssignmentExchange::expert_input() {
  const int num_sources = context_.work.point.ep_size;
  regroup_ = fixed()
                 ? num_sources > 1
                 : !is_expert_order(counts_.recv_per_slot, static_cast<std::size_t>(num_sources));
  if (!regroup_) return recv_;
  TokenOps& ops = context_.backend.token_ops();
  ops.order_by_expert(context_.lane,
                      {.num_sources = num_sources,
                       .num_local_experts = context_.work.num_own_slots(),
                       .capacity = context_.work.capacity_rows},
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
  context_.transport.all_to_all_v(context_.lane, to_return_, returned_,
                                  {.send = counts_.recv_rows,
                                   .recv = counts_.send_rows,
                                   .row_bytes = context_.row_bytes(),
                                   .capacity = context_.work.capacity_rows});
}

void AssignmentExchange::add_up(const Buffer& weights, Buffer& out) {
  const SweepPoint& point = context_.work.point;
  context_.backend.token_ops().weighted_reduce(context_.lane, row_dtype(point.dtype),
                                               point.model.top_k, position(), weights,
                                               point.model.expert_io_dim, returned_, out);
}

bool AssignmentExchange::counts_match_plan(int routing) const {
  const DispatchPlan& plan = context_.work.dispatch[static_cast<std::size_t>(routing)];
  if (!fixed()) return counts_.match(plan);
  // What a rank sent is what others received: all ranks together compare everything.
  std::vector<std::int64_t> received(counts_.recv_per_slot.size());
  context_.backend.copy_to_host(recv_counts_, received.data(), recv_counts_.bytes());
  return received == plan.recv_rows_per_slot;
}

void AssignmentExchange::poison() {
  for (Buffer* buffer : {&recv_counts_, &slots_, &position_, &expert_order_, &send_, &recv_,
                         &by_expert_, &ffn_out_, &to_return_, &returned_}) {
    context_.backend.poison(*buffer);
  }
}

}  // namespace epsweep
