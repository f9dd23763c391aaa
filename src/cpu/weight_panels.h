// Expert weights in the blocks that the products of this folder stream through.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/thread_pool.h"
#include "device/buffer.h"
#include "device/grouped_gemm.h"

namespace epsweep {

// An expert's [n][k] matrix as panels of kPanelWidth rows of it (columns of y) behind each other,
// n and k filled up with zeros:
//   bf16  [n / 32][k / 32][16][32][2]: pairs of neighbours in k for every column, as TDPBF16PS and
//         VDPBF16PS want their second operand (oneDNN: BA16a32b2a of the [k][n] matrix)
//   fp32  [n / 32][k / 16][16][32] (BA16a32b)
// A panel is read from its first byte to its last, and so are the panels of an expert.
class WeightPanels {
 public:
  static constexpr std::int64_t kPanelWidth = 32;

  explicit WeightPanels(const GemmShape& shape);
  // Allocates and packs, one panel at a time per thread.
  void load(const WeightSource& source, ThreadPool& pool);
  // 64-byte aligned.
  const std::byte* panel(int expert, std::int64_t index) const;
  std::int64_t panels() const { return panels_; }  // of an expert
  std::int64_t panel_bytes() const { return panel_bytes_; }
  std::int64_t expert_bytes() const { return panels_ * panel_bytes_; }
  std::int64_t bytes() const { return shape_.num_experts * expert_bytes(); }
  // Those of the first experts.
  void flush(int num_experts) const;
  void flush() const { flush(shape_.num_experts); }

  // k with its zeros.
  static std::int64_t padded_k(const GemmShape& shape);

 private:
  GemmShape shape_;
  std::int64_t panels_ = 0, panel_bytes_ = 0;
  Buffer weights_;
};

}  // namespace epsweep
