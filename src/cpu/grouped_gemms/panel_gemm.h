// Grouped GEMM of our own: all (expert, columns, rows) pieces of a layer behind one barrier.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cpu/panel_product.h"
#include "cpu/thread_pool.h"
#include "cpu/weight_panels.h"
#include "device/grouped_gemm.h"

namespace epsweep {

class PanelGemm final : public GroupedGemm {
 public:
  // `choice` says how `code` was found; run() hands it on.
  PanelGemm(const GemmShape& shape, int num_threads, const PanelCode& code,
            std::shared_ptr<const GemmChoice> choice);
  void prepare(const WeightSource& source) override;
  // Instead of prepare(): weights of the same shape, loaded.
  void share(std::shared_ptr<const WeightPanels> weights) { weights_ = std::move(weights); }
  void warm(std::span<const std::int64_t> rows_per_expert) override;
  GemmWork run(Lane& lane, const Buffer& x, Buffer& y,
               std::span<const std::int64_t> rows_per_expert) override;
  // The same with those experts alone that `taken` names; the others' rows stay untouched.
  GemmWork run_some(const Buffer& x, Buffer& y, std::span<const std::int64_t> rows_per_expert,
                    std::span<const char> taken);
  void flush_weights() override { weights_->flush(); }
  std::int64_t weight_bytes() const override { return weights_->bytes(); }

 private:
  struct Piece {
    int expert = 0;
    std::int64_t first_panel = 0;
    std::int64_t first_row = 0, rows = 0;  // of all experts' rows
  };
  // One cache line each: nobody waits for the others' counting.
  struct alignas(64) Worker {
    Buffer scratch;
    std::int64_t rows = 0;  // times panels
  };
  std::int64_t num_blocks(std::int64_t rows) const;
  std::int64_t block_rows(std::int64_t rows) const;
  void list_pieces(std::span<const std::int64_t> rows_per_expert, std::span<const char> taken);
  void multiply(const Piece& piece, int worker, const Buffer& x, Buffer& y);

  GemmShape shape_;
  PanelCode code_;
  std::shared_ptr<const GemmChoice> choice_;
  ThreadPool pool_;
  std::shared_ptr<const WeightPanels> weights_;
  std::int64_t piece_panels_ = 0;
  std::vector<Worker> workers_;
  std::vector<Piece> pieces_;
  std::vector<char> all_;
};

// With tiles if `tiles` may be used and the shape is one for them, else with vectors; run() says
// which, and why not tiles.
std::unique_ptr<PanelGemm> make_panel_gemm(const GemmShape& shape, int num_threads,
                                             const TileCode& tiles);

}  // namespace epsweep
