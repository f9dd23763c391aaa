// The kernels that run packed GEMMs expert by expert.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "cpu/grouped_gemms/packed_gemm.h"
#include "cpu/thread_pool.h"
#include "device/grouped_gemm.h"

namespace epsweep {

enum class ExpertOrder {
  together,    // all (expert, slice) items of the layer behind one barrier, largest expert first
  one_by_one,  // a barrier per expert, all threads inside its one product
};

// How the products are cut.
struct PackedGemmCuts {
  std::int64_t slice_cols = 0;  // columns of y per work item, a multiple of kPanelCols
  std::int64_t max_rows = 0;    // rows per oneDNN call; more rows take several calls
  // Columns per oneDNN call for so many rows: a multiple of kPanelCols, or more than a slice has.
  std::int64_t (*call_cols)(std::int64_t rows) = nullptr;
};

class PackedGroupedGemm final : public GroupedGemm {
 public:
  PackedGroupedGemm(const GemmShape& shape, int num_threads, ExpertOrder order);
  void prepare(const WeightSource& weights) override { packed_.pack(weights, pool_); }
  void warm(std::span<const std::int64_t> rows_per_expert) override;
  // Row counts that warm() has not seen are compiled here: correct, but slow.
  GemmWork run(Lane& lane, const Buffer& x, Buffer& y,
               std::span<const std::int64_t> rows_per_expert) override;
  // The same with those experts alone that `taken` names; the others' rows stay untouched.
  GemmWork run_some(const Buffer& x, Buffer& y, std::span<const std::int64_t> rows_per_expert,
                    std::span<const char> taken);
  PackedGemm& packed() { return packed_; }
  void flush_weights() override { packed_.flush(); }
  std::int64_t weight_bytes() const override { return packed_.weight_bytes(); }

 private:
  struct ExpertRows {
    int expert = 0;
    std::int64_t first_row = 0, rows = 0;
  };
  // One cache line each, for nobody waits for the others' counting.
  struct alignas(64) Worker {
    Buffer tile;
    std::int64_t calls = 0;
  };
  template <typename Function>
  void for_each_call(std::int64_t slice, std::int64_t rows, const Function& function);
  void warm_rows(std::int64_t rows);
  void list_experts(std::span<const std::int64_t> rows_per_expert, std::span<const char> taken);
  void multiply(const ExpertRows& job, std::int64_t slice, int worker, const Buffer& x, Buffer& y);

  GemmShape shape_;
  ExpertOrder order_;
  PackedGemmCuts cuts_;
  std::int64_t num_slices_ = 0;
  ThreadPool pool_;
  PackedGemm packed_;
  std::set<std::int64_t> warm_rows_;  // rows per expert warm() has seen
  std::int64_t tile_bytes_ = 0;
  std::vector<Worker> workers_;
  std::vector<ExpertRows> experts_;  // those with rows; capacity for all
  std::vector<char> all_;
};

}  // namespace epsweep
