// Exchange unit `assignment`: a token row is sent once per (token, chosen expert).
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/exchange_path.h"

namespace epsweep {

// Rows travel in the send order of dispatch_plan.h, results come back the same way, and the source
// weighs and adds them in order of choice.
//
// With a transport of fixed capacity every pair of ranks has a section of RankWork::capacity_rows
// rows in the buffers that travel; kernels put rows there and find them by counts that never leave
// the device. Only the grouped GEMMs are shaped by the host: they get the planned counts, which is
// right because the routing is prescribed and every rank knows all of it. counts_match_plan()
// compares what was exchanged to them, outside of timing.
class AssignmentExchange {
 public:
  explicit AssignmentExchange(const ExchangeContext& context);

  void announce(int routing);
  void pack(const Buffer& tokens, const Buffer& weights);
  void send();
  const Buffer& expert_input();
  Buffer& expert_output();
  void collect();
  void send_back();
  void add_up(const Buffer& weights, Buffer& out);

  const RowCounts& counts() const { return counts_; }
  bool counts_match_plan(int routing) const;
  void poison();

 private:
  bool fixed() const { return context_.work.capacity_rows > 0; }
  void make_buffers();
  void make_sections();
  SlotSort slot_sort() const;
  RowIndex position() const;
  RowIndex expert_order() const {
    return {.buffer = &expert_order_, .count = counts_.num_recv_rows};
  }

  ExchangeContext context_;
  RowCounts counts_;
  bool regroup_ = false;  // whether expert order differs from receive order
  // int64: rows for every slot, and from every rank for every own slot.
  Buffer send_counts_, recv_counts_;
  // int32: by assignment the slot and the row in send order, by row its place in receive order.
  Buffer slots_, position_, expert_order_;
  Buffer rank_of_slot_, first_slot_of_rank_;  // int32, of fixed capacity
  Buffer send_, recv_, by_expert_, ffn_out_, to_return_, returned_;
};

static_assert(ExchangePath<AssignmentExchange>);

}  // namespace epsweep
