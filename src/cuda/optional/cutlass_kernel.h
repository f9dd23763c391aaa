// The template behind cutlass_tile.h: CUTLASS 3.x, ptr-array grouped product with TMA and WGMMA,
// two consumer warp groups in turns. C++17, sm_90a; a minute of compiling for each tile, so each
// has a file of its own.
#pragma once

#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/device/gemm_universal_adapter.h>
#include <cutlass/gemm/group_array_problem_shape.hpp>
#include <cutlass/gemm/kernel/gemm_universal.hpp>

#include "cuda/optional/cutlass_tile.h"

namespace epsweep::cuda {

// Tile and Cluster are cute shapes of outputs, tokens, inputs (CUTLASS's M, N, K).
template <typename Tile, typename Cluster>
struct CutlassKernel {
  using Element = cutlass::bfloat16_t;
  using Problem = cute::Shape<int, int, int>;
  using Problems = cutlass::gemm::GroupProblemShape<Problem>;
  // Row-major w[n][k]; x[rows][k] as CUTLASS's second operand is column-major k x rows, and
  // y[rows][n] as its result column-major n x rows. TMA wants rows that are multiples of 16 bytes.
  using LayoutW = cutlass::layout::RowMajor;
  using LayoutX = cutlass::layout::ColumnMajor;
  using LayoutY = cutlass::layout::ColumnMajor;
  static constexpr int kAlignment = 8;

  // Without a C operand: outputs are written and never read.
  using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
      cutlass::epilogue::collective::EpilogueTileAuto, float, float, void, LayoutY*, kAlignment,
      Element, LayoutY*, kAlignment, cutlass::epilogue::PtrArrayTmaWarpSpecializedPingpong,
      cutlass::epilogue::fusion::LinearCombination<Element, float, void>>::CollectiveOp;
  using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Element, LayoutW*, kAlignment, Element,
      LayoutX*, kAlignment, float, Tile, Cluster,
      cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(
          sizeof(typename Epilogue::SharedStorage))>,
      cutlass::gemm::KernelPtrArrayTmaWarpSpecializedPingpong>::CollectiveOp;
  using Kernel = cutlass::gemm::kernel::GemmUniversal<Problems, Mainloop, Epilogue>;
  using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;

  // What GroupArrays holds is what CUTLASS reads.
  static_assert(sizeof(Problem) == 3 * sizeof(std::int32_t));
  static_assert(sizeof(typename Kernel::InternalStrideA) == sizeof(std::int64_t));
  static_assert(sizeof(typename Kernel::InternalStrideB) == sizeof(std::int64_t));
  static_assert(sizeof(typename Kernel::InternalStrideD) == sizeof(std::int64_t));

  static typename Gemm::Arguments arguments(int num_groups, const GroupArrays& groups,
                                            int num_multiprocessors) {
    typename Gemm::Arguments arguments{};
    arguments.mode = cutlass::gemm::GemmUniversalMode::kGrouped;
    // Shapes are on the device only: one block for each multiprocessor, those without a tile leave.
    arguments.problem_shape = {num_groups, reinterpret_cast<Problem*>(groups.shape), nullptr};
    arguments.mainloop.ptr_A = reinterpret_cast<const Element**>(groups.w);
    arguments.mainloop.dA = reinterpret_cast<typename Kernel::StrideA>(groups.stride_k);
    arguments.mainloop.ptr_B = reinterpret_cast<const Element**>(groups.x);
    arguments.mainloop.dB = reinterpret_cast<typename Kernel::StrideB>(groups.stride_k);
    arguments.epilogue.thread.alpha = 1;
    arguments.epilogue.ptr_D = reinterpret_cast<Element**>(groups.y);
    arguments.epilogue.dD = reinterpret_cast<typename Kernel::StrideD>(groups.stride_n);
    arguments.hw_info.sm_count = num_multiprocessors;
    // Blocks that run at the same time share a stretch of weights and differ in tokens: weights
    // come from memory once, also where an expert's do not fit the cache.
    arguments.scheduler.raster_order = decltype(arguments.scheduler.raster_order)::AlongN;
    return arguments;
  }

  static std::int64_t workspace_bytes(int num_multiprocessors) {
    return static_cast<std::int64_t>(
        Gemm::get_workspace_size(arguments(1, {}, num_multiprocessors)));
  }

  static const char* run(cudaStream_t stream, int num_groups, const GroupArrays& groups,
                         const CutlassRoom& room) {
    const auto wanted = arguments(num_groups, groups, room.num_multiprocessors);
    Gemm gemm;
    cutlass::Status status = gemm.initialize(wanted, room.workspace, stream);
    if (status == cutlass::Status::kSuccess) status = gemm.run(stream);
    return status == cutlass::Status::kSuccess ? nullptr : cutlassGetStatusString(status);
  }

  static const CutlassTile* tile() {
    static const CutlassTile kTile{static_cast<int>(cute::size<0>(Tile{})),
                                   static_cast<int>(cute::size<1>(Tile{})), workspace_bytes, run};
    return &kTile;
  }
};

}  // namespace epsweep::cuda
