// Exchange unit `assignment`: a token row is sent once per (token, chosen expert).
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/exchange_path.h"

namespace epsweep {

// Rows travel in the send order of dispatch_plan.h, results come back the same way, and the source
// weighs and adds them in order of choice.
class AssignmentExchange {
 public:
  explicit AssignmentExchange(const ExchangeContext& context);

  void announce(int layer);
  void pack(const Buffer& tokens, const Buffer& weights);
  void send();
  const Buffer& expert_input();
  Buffer& expert_output();
  void collect();
  void send_back();
  void add_up(const Buffer& weights, Buffer& out);

  const RowCounts& counts() const { return counts_; }
  bool counts_match_plan(int layer) const;
  void poison();

 private:
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
  Buffer send_, recv_, by_expert_, ffn_out_, to_return_, returned_;
};

static_assert(ExchangePath<AssignmentExchange>);

}  // namespace epsweep
