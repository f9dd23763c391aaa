#include "cuda/cuda_token_ops.h"

#include <cstdint>

#include "base/error.h"
#include "cuda/cuda_lane.h"
#include "cuda/cuda_memory.h"
#include "cuda/element_type_of.h"
#include "cuda/kernels/router.h"
#include "cuda/kernels/rows.h"
#include "cuda/kernels/slots.h"

namespace epsweep::cuda {
namespace {

RouterScore score_of(ScoreFunction score) {
  switch (score) {
    case ScoreFunction::softmax:
      return RouterScore::softmax;
    case ScoreFunction::topk_softmax:
      return RouterScore::topk_softmax;
    case ScoreFunction::sigmoid:
      return RouterScore::sigmoid;
    case ScoreFunction::sqrtsoftplus:
      break;
  }
  return RouterScore::sqrtsoftplus;
}

void grow(Buffer& buffer, std::int64_t bytes) {
  if (buffer.bytes() < bytes) buffer = make_device_buffer(bytes);
}

template <typename T>
const T* data(const Buffer& buffer) {
  return static_cast<const T*>(buffer.data());
}
template <typename T>
T* data(Buffer& buffer) {
  return static_cast<T*>(buffer.data());
}

constexpr auto kCount = static_cast<std::int64_t>(sizeof(std::int64_t));

}  // namespace

void CudaTokenOps::router(Lane& lane, const RouterOp& op, const Buffer& x, const Buffer& gate,
                          const Buffer& prescribed, Buffer& own_choice, Buffer& weights) {
  EPS_EXPECT(op.num_experts <= kMaxRouterExperts && op.top_k <= kMaxRouterTopK &&
                 op.groups.num_groups <= kMaxRouterGroups &&
                 op.groups.topk_groups <= kMaxRouterTopK,
             "more experts, choices or groups than the router kernel holds");
  grow(router_scratch_, router_scratch_entries(op.num_tokens, op.hidden_dim, op.num_experts) *
                            static_cast<std::int64_t>(sizeof(float)));
  cuda::router(
      stream_of(lane),
      {.num_tokens = op.num_tokens,
       .hidden_dim = op.hidden_dim,
       .num_experts = op.num_experts,
       .top_k = op.top_k,
       .type = element_type_of(op.dtype),
       .score = score_of(op.score),
       .renormalize = op.renormalize,
       .select_by_logit = op.select_by_logit,
       .scale = op.scale,
       .num_groups = op.groups.num_groups,
       .topk_groups = op.groups.topk_groups,
       .group_score =
           op.groups.score == GroupScore::max ? RouterGroupScore::max : RouterGroupScore::top2_sum,
       .x = x.data(),
       .gate = data<float>(gate),
       .selection_bias = op.selection_bias == nullptr ? nullptr : data<float>(*op.selection_bias),
       .prescribed = data<std::int32_t>(prescribed),
       .own_choice = data<std::int32_t>(own_choice),
       .weights = data<float>(weights),
       .scratch = data<float>(router_scratch_)});
}

void CudaTokenOps::assign_slots(Lane& lane, const AssignSlots& op, const Buffer& experts,
                                Buffer& slots) {
  cuda::assign_slots(stream_of(lane), data<std::int32_t>(*op.first_of_expert),
                     data<std::int32_t>(*op.slots_by_expert), data<std::int32_t>(experts),
                     op.first_token, op.top_k, op.assignments, data<std::int32_t>(slots));
}

void CudaTokenOps::count_slots(Lane& lane, const SlotSort& op, const Buffer& slots,
                               Buffer& counts) {
  grow(sort_scratch_, sort_scratch_entries(op.assignments, op.num_slots) * kCount);
  cuda::count_slots(stream_of(lane), data<std::int32_t>(slots), op.assignments, op.num_slots,
                    data<std::int64_t>(counts), data<std::int64_t>(sort_scratch_));
}

// The scratch holds where each tile's assignments go since count_slots(), so counts are not needed.
void CudaTokenOps::sort_by_slot(Lane& lane, const SlotSort& op, const Buffer& slots, Buffer&,
                                Buffer& position) {
  RankSections sections;
  if (op.capacity > 0) {
    sections = {.capacity = op.capacity,
                .rank_of_slot = data<std::int32_t>(*op.rank_of_slot),
                .first_slot_of_rank = data<std::int32_t>(*op.first_slot_of_rank)};
  }
  place_by_slot(stream_of(lane), data<std::int32_t>(slots), op.assignments,
                data<std::int64_t>(sort_scratch_), sections, data<std::int32_t>(position));
}

void CudaTokenOps::order_by_expert(Lane& lane, const ReceivedPairs& op, const Buffer& recv_counts,
                                   Buffer& expert_order) {
  grow(order_scratch_, order_scratch_entries(op.num_sources, op.num_local_experts) * kCount);
  grow(order_rows_, op.num_local_experts * kCount);
  cuda::order_by_expert(stream_of(lane), data<std::int64_t>(recv_counts), op.num_sources,
                        op.num_local_experts, op.capacity, data<std::int64_t>(order_rows_),
                        data<std::int32_t>(expert_order), data<std::int64_t>(order_scratch_));
}

void CudaTokenOps::scatter_rows(Lane& lane, const Buffer& in, std::int64_t in_stride_bytes,
                                int repeat, const RowIndex& position, std::int64_t row_bytes,
                                Buffer& out) {
  cuda::scatter_rows(stream_of(lane), in.data(), in_stride_bytes, repeat,
                     data<std::int32_t>(*position.buffer), position.count, row_bytes, out.data());
}

void CudaTokenOps::gather_rows(Lane& lane, const Buffer& in, const RowIndex& source,
                               std::int64_t row_bytes, Buffer& out) {
  cuda::gather_rows(stream_of(lane), in.data(), row_bytes, data<std::int32_t>(*source.buffer),
                    source.count, row_bytes, out.data());
}

void CudaTokenOps::move_rows(Lane& lane, const MoveRows& op, const Buffer& in, Buffer& out) {
  cuda::move_rows(stream_of(lane), {.rows = op.source.count,
                                    .row_bytes = op.row_bytes,
                                    .in_stride_bytes = op.in_stride_bytes,
                                    .out_stride_bytes = op.out_stride_bytes,
                                    .source = data<std::int32_t>(*op.source.buffer),
                                    .position = op.position.buffer == nullptr
                                                    ? nullptr
                                                    : data<std::int32_t>(*op.position.buffer),
                                    .in = in.data(),
                                    .out = out.data()});
}

void CudaTokenOps::activation(Lane& lane, Activation kind, DType dtype, std::int64_t rows,
                              std::int64_t cols, const Buffer& in, Buffer& out) {
  if (rows == 0) return;
  const auto activate = kind == Activation::swiglu ? swiglu : squared_relu;
  activate(stream_of(lane), element_type_of(dtype), rows, cols, in.data(), out.data());
}

void CudaTokenOps::weighted_reduce(Lane& lane, DType dtype, int top_k, const RowIndex& position,
                                   const Buffer& weights, std::int64_t cols, const Buffer& in,
                                   Buffer& out) {
  if (top_k == 0) return;
  cuda::weighted_reduce(stream_of(lane), element_type_of(dtype), top_k,
                        data<std::int32_t>(*position.buffer), data<float>(weights),
                        position.count / top_k, cols, in.data(), data<float>(out));
}

void CudaTokenOps::segment_reduce(Lane& lane, const SegmentReduce& op, const Buffer& in,
                                  Buffer& out) {
  cuda::segment_reduce(stream_of(lane),
                       {.in_type = element_type_of(op.in_dtype),
                        .out_type = element_type_of(op.out_dtype),
                        .segments = op.segments,
                        .cols = op.cols,
                        .first = data<std::int32_t>(*op.first),
                        .row = data<std::int32_t>(*op.row),
                        .weights = op.weights == nullptr ? nullptr : data<float>(*op.weights),
                        .in = in.data(),
                        .out = out.data()});
}

}  // namespace epsweep::cuda
