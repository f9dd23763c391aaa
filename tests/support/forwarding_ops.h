// Token operations that hand everything on; tests derive from them to look at what passes.
#pragma once

#include "device/token_ops.h"

namespace epsweep {

class ForwardingOps : public TokenOps {
 public:
  explicit ForwardingOps(TokenOps& inner) : inner_(inner) {}

  void router(Lane& lane, const RouterOp& op, const Buffer& x, const Buffer& gate,
              const Buffer& prescribed, Buffer& own_choice, Buffer& weights) override {
    inner_.router(lane, op, x, gate, prescribed, own_choice, weights);
  }
  void assign_slots(Lane& lane, const AssignSlots& op, const Buffer& experts,
                    Buffer& slots) override {
    inner_.assign_slots(lane, op, experts, slots);
  }
  void count_slots(Lane& lane, const SlotSort& op, const Buffer& slots, Buffer& counts) override {
    inner_.count_slots(lane, op, slots, counts);
  }
  void sort_by_slot(Lane& lane, const SlotSort& op, const Buffer& slots, Buffer& counts,
                    Buffer& position) override {
    inner_.sort_by_slot(lane, op, slots, counts, position);
  }
  void order_by_expert(Lane& lane, const ReceivedPairs& op, const Buffer& recv_counts,
                       Buffer& expert_order) override {
    inner_.order_by_expert(lane, op, recv_counts, expert_order);
  }
  void scatter_rows(Lane& lane, const Buffer& in, std::int64_t in_stride_bytes, int repeat,
                    const RowIndex& position, std::int64_t row_bytes, Buffer& out) override {
    inner_.scatter_rows(lane, in, in_stride_bytes, repeat, position, row_bytes, out);
  }
  void gather_rows(Lane& lane, const Buffer& in, const RowIndex& source, std::int64_t row_bytes,
                   Buffer& out) override {
    inner_.gather_rows(lane, in, source, row_bytes, out);
  }
  void move_rows(Lane& lane, const MoveRows& op, const Buffer& in, Buffer& out) override {
    inner_.move_rows(lane, op, in, out);
  }
  void activation(Lane& lane, Activation kind, DType dtype, std::int64_t rows, std::int64_t cols,
                  const Buffer& in, Buffer& out) override {
    inner_.activation(lane, kind, dtype, rows, cols, in, out);
  }
  void weighted_reduce(Lane& lane, DType dtype, int top_k, const RowIndex& position,
                       const Buffer& weights, std::int64_t cols, const Buffer& in,
                       Buffer& out) override {
    inner_.weighted_reduce(lane, dtype, top_k, position, weights, cols, in, out);
  }
  void segment_reduce(Lane& lane, const SegmentReduce& op, const Buffer& in, Buffer& out) override {
    inner_.segment_reduce(lane, op, in, out);
  }

 private:
  TokenOps& inner_;
};

}  // namespace epsweep
