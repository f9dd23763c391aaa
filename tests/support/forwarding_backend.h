// A backend that hands everything on to another; tests derive from its parts to look at what
// passes.
#pragma once

#include <memory>

#include "device/backend.h"

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

// `Ops` is constructed from the inner backend's token operations and `arguments`.
template <typename Ops>
class ForwardingBackend final : public Backend {
 public:
  template <typename... Arguments>
  explicit ForwardingBackend(std::unique_ptr<Backend> inner, Arguments&&... arguments)
      : inner_(std::move(inner)), ops_(inner_->token_ops(), arguments...) {}

  BackendInfo describe() const override { return inner_->describe(); }
  std::unique_ptr<Lane> make_lane() override { return inner_->make_lane(); }
  std::unique_ptr<Timeline> make_timeline(int num_marks) override {
    return inner_->make_timeline(num_marks);
  }
  Buffer make_buffer(std::int64_t bytes) override { return inner_->make_buffer(bytes); }
  void copy_to_host(const Buffer& from, void* to, std::int64_t bytes) override {
    inner_->copy_to_host(from, to, bytes);
  }
  void copy_from_host(const void* from, Buffer& to, std::int64_t bytes) override {
    inner_->copy_from_host(from, to, bytes);
  }
  void poison(Buffer& buffer) override { inner_->poison(buffer); }
  Ops& token_ops() override { return ops_; }

 private:
  std::unique_ptr<Backend> inner_;
  Ops ops_;
};

}  // namespace epsweep
