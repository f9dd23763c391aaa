// Token rows on the host.
#pragma once

#include <cstdint>
#include <span>

#include "cpu/router_op.h"
#include "cpu/thread_pool.h"
#include "device/token_ops.h"

namespace epsweep {

class CpuTokenOps final : public TokenOps {
 public:
  explicit CpuTokenOps(int num_threads) : pool_(num_threads) {}

  void router(Lane& lane, const RouterOp& op, const Buffer& x, const Buffer& gate,
              std::span<const std::int32_t> prescribed, Buffer& own_choice,
              Buffer& weights) override;
  void scatter_rows(Lane& lane, const Buffer& in, std::int64_t in_stride_bytes, int repeat,
                    std::span<const std::int32_t> position, std::int64_t row_bytes,
                    Buffer& out) override;
  void gather_rows(Lane& lane, const Buffer& in, std::span<const std::int32_t> source,
                   std::int64_t row_bytes, Buffer& out) override;
  void move_rows(Lane& lane, const MoveRows& op, const Buffer& in, Buffer& out) override;
  void activation(Lane& lane, Activation kind, DType dtype, std::int64_t rows, std::int64_t cols,
                  const Buffer& in, Buffer& out) override;
  void weighted_reduce(Lane& lane, DType dtype, int top_k, std::span<const std::int32_t> position,
                       const Buffer& weights, std::int64_t cols, const Buffer& in,
                       Buffer& out) override;
  void segment_reduce(Lane& lane, const SegmentReduce& op, const Buffer& in, Buffer& out) override;

 private:
  ThreadPool pool_;
  CpuRouter router_;
};

}  // namespace epsweep
