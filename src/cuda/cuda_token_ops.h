// Token operations by the kernels of src/cuda/kernels.
#pragma once

#include "device/token_ops.h"

namespace epsweep::cuda {

class CudaTokenOps final : public TokenOps {
 public:
  void router(Lane& lane, const RouterOp& op, const Buffer& x, const Buffer& gate,
              const Buffer& prescribed, Buffer& own_choice, Buffer& weights) override;
  void assign_slots(Lane& lane, const AssignSlots& op, const Buffer& experts,
                    Buffer& slots) override;
  void count_slots(Lane& lane, const SlotSort& op, const Buffer& slots, Buffer& counts) override;
  void sort_by_slot(Lane& lane, const SlotSort& op, const Buffer& slots, Buffer& counts,
                    Buffer& position) override;
  void order_by_expert(Lane& lane, const ReceivedPairs& op, const Buffer& recv_counts,
                       Buffer& expert_order) override;
  void scatter_rows(Lane& lane, const Buffer& in, std::int64_t in_stride_bytes, int repeat,
                    const RowIndex& position, std::int64_t row_bytes, Buffer& out) override;
  void gather_rows(Lane& lane, const Buffer& in, const RowIndex& source, std::int64_t row_bytes,
                   Buffer& out) override;
  void move_rows(Lane& lane, const MoveRows& op, const Buffer& in, Buffer& out) override;
  void activation(Lane& lane, Activation kind, DType dtype, std::int64_t rows, std::int64_t cols,
                  const Buffer& in, Buffer& out) override;
  void weighted_reduce(Lane& lane, DType dtype, int top_k, const RowIndex& position,
                       const Buffer& weights, std::int64_t cols, const Buffer& in,
                       Buffer& out) override;
  void segment_reduce(Lane& lane, const SegmentReduce& op, const Buffer& in, Buffer& out) override;

 private:
  // Grown by the first calls, which are the warm-up's, and kept: timed iterations allocate nothing.
  Buffer router_scratch_, sort_scratch_, order_scratch_, order_rows_;
};

}  // namespace epsweep::cuda
