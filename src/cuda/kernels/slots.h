// From chosen experts to send order and from received counts to expert order; twins of the counting
// sorts in workload/dispatch_plan.h. All calls enqueue. C++17.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace epsweep::cuda {

// slot[a] = the slot that serves assignment a of tokens first_token, first_token + 1, ...: among
// the expert's slots the one that a hash of the token's number chooses (Placement::slot_of).
void assign_slots(cudaStream_t stream, const std::int32_t* first_of_expert,
                  const std::int32_t* slots_by_expert, const std::int32_t* expert_of_assignment,
                  std::int64_t first_token, int top_k, std::int64_t assignments,
                  std::int32_t* slot_of_assignment);

// Where each destination rank's rows begin: behind those of the rank before, or at multiples of
// `capacity` rows.
struct RankSections {
  std::int64_t capacity = 0;                         // 0: without gaps; the arrays may be null then
  const std::int32_t* rank_of_slot = nullptr;        // [num_slots]
  const std::int32_t* first_slot_of_rank = nullptr;  // [ranks]
};

// The two halves of a counting sort share scratch of so many int64.
std::int64_t sort_scratch_entries(std::int64_t assignments, int num_slots);
// counts[slot] = assignments of the slot.
void count_slots(cudaStream_t stream, const std::int32_t* slot_of_assignment,
                 std::int64_t assignments, int num_slots, std::int64_t* counts,
                 std::int64_t* scratch);
// position[a] = row of assignment a in send order: by slot, then by assignment. `scratch` as
// count_slots() left it for the same assignments.
void place_by_slot(cudaStream_t stream, const std::int32_t* slot_of_assignment,
                   std::int64_t assignments, const std::int64_t* scratch,
                   const RankSections& sections, std::int32_t* position);

// Entries of int64 that order_by_expert() wants as scratch.
std::int64_t order_scratch_entries(int num_sources, int num_local_experts);
// Row i in expert order is row expert_order[i] in receive order; counts [num_sources]
// [num_local_experts]. Rows of every source begin at a multiple of `capacity` rows; 0: without
// gaps. rows_per_expert[local] = rows of each local expert.
void order_by_expert(cudaStream_t stream, const std::int64_t* recv_rows_per_slot, int num_sources,
                     int num_local_experts, std::int64_t capacity, std::int64_t* rows_per_expert,
                     std::int32_t* expert_order, std::int64_t* scratch);

}  // namespace epsweep::cuda
