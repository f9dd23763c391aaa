#include "base/replica_choice.h"
#include "cuda/kernels/elements.h"
#include "cuda/kernels/scan.h"
#include "cuda/kernels/slots.h"
#include "cuda/launch.h"

namespace epsweep::cuda {
namespace {

// Assignments that one block puts into order.
constexpr int kTile = 256;

__global__ void assign_kernel(const std::int32_t* first_of_expert,
                              const std::int32_t* slots_by_expert, const std::int32_t* experts,
                              std::int64_t first_token, int top_k, std::int64_t assignments,
                              std::int32_t* slots) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kTile;
  for (std::int64_t a = static_cast<std::int64_t>(blockIdx.x) * kTile + threadIdx.x;
       a < assignments; a += step) {
    const std::int32_t expert = experts[a];
    const std::int32_t begin = first_of_expert[expert];
    const auto replicas = static_cast<std::uint64_t>(first_of_expert[expert + 1] - begin);
    const std::uint64_t hash = replica_hash(first_token + a / top_k);
    slots[a] = slots_by_expert[begin + static_cast<std::int32_t>(chosen_replica(hash, replicas))];
  }
}

struct TileMemory {
  std::int32_t slot[kTile];
};

// The slots of one tile in shared memory; -1 behind the end.
__device__ TileMemory& load_tile(const std::int32_t* slots, std::int64_t tile,
                                 std::int64_t assignments) {
  TileMemory& memory = shared_memory<TileMemory>();
  const std::int64_t a = tile * kTile + threadIdx.x;
  memory.slot[threadIdx.x] = a < assignments ? slots[a] : -1;
  __syncthreads();
  return memory;
}

// tile_counts[slot * tiles + tile]: how many assignments of a tile go to each slot.
__global__ void count_kernel(const std::int32_t* slots, std::int64_t assignments, int num_slots,
                             std::int64_t tiles, std::int64_t* tile_counts) {
  for (std::int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const TileMemory& memory = load_tile(slots, tile, assignments);
    for (int slot = static_cast<int>(threadIdx.x); slot < num_slots; slot += kTile) {
      std::int64_t count = 0;
      for (int i = 0; i < kTile; ++i) count += memory.slot[i] == slot ? 1 : 0;
      tile_counts[slot * tiles + tile] = count;
    }
    __syncthreads();
  }
}

// In place: where the tile's first assignment of each slot goes; and the slots' totals.
__global__ void offsets_kernel(int num_slots, std::int64_t tiles, std::int64_t* tile_counts,
                               std::int64_t* counts) {
  for (int slot = static_cast<int>(threadIdx.x); slot < num_slots; slot += kScanThreads) {
    std::int64_t count = 0;
    for (std::int64_t tile = 0; tile < tiles; ++tile) count += tile_counts[slot * tiles + tile];
    counts[slot] = count;
  }
  __syncthreads();
  exclusive_scan(
      num_slots * tiles, [=](std::int64_t i) { return tile_counts[i]; },
      [=](std::int64_t i, std::int64_t sum) { tile_counts[i] = sum; });
}

// Stable: an assignment stands behind those of its slot that come before it in its tile.
__global__ void position_kernel(const std::int32_t* slots, std::int64_t assignments,
                                std::int64_t tiles, const std::int64_t* tile_offsets,
                                RankSections sections, std::int32_t* position) {
  for (std::int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const TileMemory& memory = load_tile(slots, tile, assignments);
    const auto thread = static_cast<int>(threadIdx.x);
    const std::int32_t slot = memory.slot[thread];
    if (slot >= 0) {
      std::int64_t place = tile_offsets[slot * tiles + tile];
      for (int i = 0; i < thread; ++i) place += memory.slot[i] == slot ? 1 : 0;
      if (sections.capacity > 0) {
        const std::int32_t rank = sections.rank_of_slot[slot];
        const std::int64_t without_gaps = tile_offsets[sections.first_slot_of_rank[rank] * tiles];
        place += rank * sections.capacity - without_gaps;
      }
      position[tile * kTile + thread] = static_cast<std::int32_t>(place);
    }
    __syncthreads();
  }
}

// begins[pair] = first row of a (source, local expert) in receive order, pairs by source;
// begins[pairs + pair] = its first row in expert order.
__global__ void pair_offsets_kernel(const std::int64_t* counts, int sources, int locals,
                                    std::int64_t* rows_per_expert, std::int64_t* begins) {
  for (int local = static_cast<int>(threadIdx.x); local < locals; local += kScanThreads) {
    std::int64_t rows = 0;
    for (int source = 0; source < sources; ++source) rows += counts[source * locals + local];
    rows_per_expert[local] = rows;
  }
  const std::int64_t pairs = static_cast<std::int64_t>(sources) * locals;
  const auto by_source = [=](std::int64_t i) { return i % sources * locals + i / sources; };
  exclusive_scan(
      pairs, [=](std::int64_t i) { return counts[i]; },
      [=](std::int64_t i, std::int64_t sum) { begins[i] = sum; });
  exclusive_scan(
      pairs, [=](std::int64_t i) { return counts[by_source(i)]; },
      [=](std::int64_t i, std::int64_t sum) { begins[pairs + by_source(i)] = sum; });
}

__global__ void order_kernel(const std::int64_t* counts, std::int64_t pairs, int locals,
                             std::int64_t capacity, const std::int64_t* begins,
                             std::int32_t* expert_order) {
  for (std::int64_t pair = blockIdx.x; pair < pairs; pair += gridDim.x) {
    const std::int64_t source = pair / locals, ordered = begins[pairs + pair];
    const std::int64_t gap = capacity > 0 ? source * capacity - begins[source * locals] : 0;
    const std::int64_t received = begins[pair] + gap;
    for (std::int64_t i = threadIdx.x; i < counts[pair]; i += blockDim.x) {
      expert_order[ordered + i] = static_cast<std::int32_t>(received + i);
    }
  }
}

std::int64_t tiles_of(std::int64_t assignments) {
  return (assignments + kTile - 1) / kTile;
}

}  // namespace

void assign_slots(cudaStream_t stream, const std::int32_t* first_of_expert,
                  const std::int32_t* slots_by_expert, const std::int32_t* expert_of_assignment,
                  std::int64_t first_token, int top_k, std::int64_t assignments,
                  std::int32_t* slot_of_assignment) {
  launch(stream, Grid{dim3(blocks_for(assignments, kTile)), dim3(kTile)}, assign_kernel,
         first_of_expert, slots_by_expert, expert_of_assignment, first_token, top_k, assignments,
         slot_of_assignment);
}

std::int64_t sort_scratch_entries(std::int64_t assignments, int num_slots) {
  return tiles_of(assignments) * num_slots;
}

void count_slots(cudaStream_t stream, const std::int32_t* slot_of_assignment,
                 std::int64_t assignments, int num_slots, std::int64_t* counts,
                 std::int64_t* scratch) {
  const std::int64_t tiles = tiles_of(assignments);
  launch(stream, Grid{dim3(blocks_for(tiles, 1)), dim3(kTile)}, count_kernel, slot_of_assignment,
         assignments, num_slots, tiles, scratch);
  launch(stream, Grid{dim3(1), dim3(kScanThreads)}, offsets_kernel, num_slots, tiles, scratch,
         counts);
}

void place_by_slot(cudaStream_t stream, const std::int32_t* slot_of_assignment,
                   std::int64_t assignments, const std::int64_t* scratch,
                   const RankSections& sections, std::int32_t* position) {
  const std::int64_t tiles = tiles_of(assignments);
  launch(stream, Grid{dim3(blocks_for(tiles, 1)), dim3(kTile)}, position_kernel, slot_of_assignment,
         assignments, tiles, scratch, sections, position);
}

std::int64_t order_scratch_entries(int num_sources, int num_local_experts) {
  return 2 * static_cast<std::int64_t>(num_sources) * num_local_experts;
}

void order_by_expert(cudaStream_t stream, const std::int64_t* recv_rows_per_slot, int num_sources,
                     int num_local_experts, std::int64_t capacity, std::int64_t* rows_per_expert,
                     std::int32_t* expert_order, std::int64_t* scratch) {
  const std::int64_t pairs = static_cast<std::int64_t>(num_sources) * num_local_experts;
  if (pairs == 0) return;
  launch(stream, Grid{dim3(1), dim3(kScanThreads)}, pair_offsets_kernel, recv_rows_per_slot,
         num_sources, num_local_experts, rows_per_expert, scratch);
  launch(stream, Grid{dim3(blocks_for(pairs, 1)), dim3(128)}, order_kernel, recv_rows_per_slot,
         pairs, num_local_experts, capacity, scratch, expert_order);
}

}  // namespace epsweep::cuda
