// Everything a layer does to token rows besides the exchange and the matrix products.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "base/top_k.h"
#include "device/buffer.h"
#include "device/lane.h"

namespace epsweep {

// How logits become the weights of the chosen experts.
enum class ScoreFunction { softmax, topk_softmax, sigmoid, sqrtsoftplus };

struct RouterOp {
  std::int64_t num_tokens = 0;
  std::int64_t hidden_dim = 0;
  int num_experts = 0;
  int top_k = 0;
  DType dtype = DType::bf16;
  ScoreFunction score = ScoreFunction::softmax;
  bool renormalize = false;
  float scale = 1.0F;
  // The selection: top-k of the logits or the scores, plus selection_bias, under the limit.
  GroupLimit groups = {};
  bool select_by_logit = true;
  const Buffer* selection_bias = nullptr;  // fp32 [num_experts]; null for none
};

enum class Activation { swiglu, squared_relu };

// Row numbers on the device: the first `count` int32 of a buffer.
struct RowIndex {
  const Buffer* buffer = nullptr;
  std::int64_t count = 0;
};

// Which slots hold an expert: slots_by_expert[first_of_expert[e] .. first_of_expert[e + 1]), int32.
// Among them the hash of a token's number in the group's C chooses (workload/placement.h).
struct AssignSlots {
  const Buffer* first_of_expert = nullptr;  // [num_experts + 1]
  const Buffer* slots_by_expert = nullptr;  // [num_slots]
  std::int64_t first_token = 0;             // of the first assignment
  int top_k = 1;
  std::int64_t assignments = 0;
};

// Rows of a rank begin behind those of the rank before, or, where a buffer has a section of
// `capacity` rows for every rank, at multiples of it.
struct SlotSort {
  int num_slots = 0;
  std::int64_t assignments = 0;
  std::int64_t capacity = 0;                   // 0: without gaps; the buffers may be null then
  const Buffer* rank_of_slot = nullptr;        // int32 [num_slots]
  const Buffer* first_slot_of_rank = nullptr;  // int32 [ranks + 1]
};

struct ReceivedPairs {
  int num_sources = 0, num_local_experts = 0;
  std::int64_t capacity = 0;  // of every source's section, as in SlotSort
};

// row_bytes from byte source[i] * in_stride_bytes to byte position[i] * out_stride_bytes, for every
// i. A stride may be less than a row, where rows lie among smaller things.
struct MoveRows {
  std::int64_t row_bytes = 0;
  std::int64_t in_stride_bytes = 0, out_stride_bytes = 0;
  RowIndex source;
  RowIndex position;  // as many; without a buffer it is 0, 1, 2, ...
};

// out[s] = sum over i, first[s] <= i < first[s + 1], of weights[i] * in[row[i]], in order of i and
// in fp32, stored as out_dtype; zeros for an empty segment. Rows have `cols` columns.
struct SegmentReduce {
  DType in_dtype = DType::bf16;
  DType out_dtype = DType::fp32;
  std::int64_t cols = 0;
  std::int64_t segments = 0;
  const Buffer* first = nullptr;    // int32 [segments + 1]
  const Buffer* row = nullptr;      // int32 [first[segments]]
  const Buffer* weights = nullptr;  // fp32, as many; null for ones
};

// All calls enqueue; indices lie where the device has its data. Indices and shapes are checked by
// the caller before timing. Scratch grows with the first call of a size, which is the warm-up's.
class TokenOps {
 public:
  virtual ~TokenOps() = default;

  // logits = x[num_tokens][hidden_dim] * gate[num_experts][hidden_dim]^T, scores, top-k (ties to
  // the lower expert id, and to the lower group). x holds op.dtype, gate and `weights` fp32,
  // `own_choice` int32. What top-k chose is written to `own_choice` and used for nothing else:
  // `prescribed` int32 [num_tokens][top_k] is the trace's choice, and `weights` gets the scores
  // there.
  virtual void router(Lane& lane, const RouterOp& op, const Buffer& x, const Buffer& gate,
                      const Buffer& prescribed, Buffer& own_choice, Buffer& weights) = 0;

  // slots[a] = the slot that serves assignment a; experts and slots int32 [assignments].
  virtual void assign_slots(Lane& lane, const AssignSlots& op, const Buffer& experts,
                            Buffer& slots) = 0;
  // The two halves of a stable counting sort. counts[slot] = assignments of the slot, int64
  // [num_slots].
  virtual void count_slots(Lane& lane, const SlotSort& op, const Buffer& slots, Buffer& counts) = 0;
  // position[a] = row of assignment a in send order (by slot, then by assignment), int32
  // [assignments]. Follows count_slots() of the same slots, whose counts it may destroy.
  virtual void sort_by_slot(Lane& lane, const SlotSort& op, const Buffer& slots, Buffer& counts,
                            Buffer& position) = 0;
  // Row i in expert order (by local expert, then source) is row expert_order[i] in receive order
  // (by source, then local expert); recv_counts int64 [num_sources][num_local_experts],
  // expert_order int32 [their sum].
  virtual void order_by_expert(Lane& lane, const ReceivedPairs& op, const Buffer& recv_counts,
                               Buffer& expert_order) = 0;

  // out[position[i]] = in[i / repeat] for i < position.count: the first row_bytes of input rows
  // that are in_stride_bytes apart.
  virtual void scatter_rows(Lane& lane, const Buffer& in, std::int64_t in_stride_bytes, int repeat,
                            const RowIndex& position, std::int64_t row_bytes, Buffer& out) = 0;
  // out[i] = in[source[i]], rows of row_bytes.
  virtual void gather_rows(Lane& lane, const Buffer& in, const RowIndex& source,
                           std::int64_t row_bytes, Buffer& out) = 0;
  // Both at once, as MoveRows says.
  virtual void move_rows(Lane& lane, const MoveRows& op, const Buffer& in, Buffer& out) = 0;
  // swiglu: in [rows][2 * cols] = gate beside up, out = silu(gate) * up.
  // squared_relu: in [rows][cols], out = max(in, 0)^2. Computed in fp32, stored as dtype.
  virtual void activation(Lane& lane, Activation kind, DType dtype, std::int64_t rows,
                          std::int64_t cols, const Buffer& in, Buffer& out) = 0;
  // out[t] = sum over j of weights[t * top_k + j] * in[position[t * top_k + j]], in order of j, in
  // fp32; out is fp32 [num_tokens][cols].
  virtual void weighted_reduce(Lane& lane, DType dtype, int top_k, const RowIndex& position,
                               const Buffer& weights, std::int64_t cols, const Buffer& in,
                               Buffer& out) = 0;
  // The same with any number of rows per sum, as SegmentReduce says.
  virtual void segment_reduce(Lane& lane, const SegmentReduce& op, const Buffer& in,
                              Buffer& out) = 0;
};

}  // namespace epsweep
