#include "cpu/grouped_gemms/panel_gemm.h"

#include <algorithm>
#include <cstddef>
#include <tuple>

#include "base/error.h"
#include "cpu/cpu_backend.h"

namespace epsweep {
namespace {

// 512 columns: enough pieces to balance two to eight threads even if one expert has most of the
// rows, and long enough streams of weights.
constexpr std::int64_t kPiecePanels = 16;

}  // namespace

PanelGemm::PanelGemm(const GemmShape& shape, int num_threads, const PanelCode& code,
                     std::shared_ptr<const GemmChoice> choice)
    : shape_(shape),
      code_(code),
      choice_(std::move(choice)),
      pool_(num_threads),
      piece_panels_(std::min(kPiecePanels, code.most_panels)),
      workers_(static_cast<std::size_t>(num_threads)),
      all_(static_cast<std::size_t>(shape.num_experts), 1) {}

void PanelGemm::prepare(const WeightSource& source) {
  auto own = std::make_shared<WeightPanels>(shape_);
  own->load(source, pool_);
  share(std::move(own));
}

void PanelGemm::warm(std::span<const std::int64_t> rows_per_expert) {
  EPS_EXPECT(rows_per_expert.size() == static_cast<std::size_t>(shape_.num_experts),
             "one row count per local expert");
  std::int64_t scratch = 0, pieces = 0;
  for (const std::int64_t rows : rows_per_expert) {
    if (rows > 0) scratch = std::max(scratch, code_.scratch_bytes(shape_, block_rows(rows)));
    pieces += num_blocks(rows) * ((weights_->panels() + piece_panels_ - 1) / piece_panels_);
  }
  pieces_.reserve(static_cast<std::size_t>(pieces));
  for (Worker& worker : workers_) {
    if (worker.scratch.bytes() < scratch) worker.scratch = make_cpu_buffer(scratch);
  }
}

std::int64_t PanelGemm::num_blocks(std::int64_t rows) const {
  return (rows + code_.most_rows - 1) / code_.most_rows;
}

// Rows of the largest block of an expert.
std::int64_t PanelGemm::block_rows(std::int64_t rows) const {
  const std::int64_t blocks = num_blocks(rows);
  return (rows + blocks - 1) / blocks;
}

// Rows of a block inside columns: the columns' weights are in a cache for the next block.
void PanelGemm::list_pieces(std::span<const std::int64_t> rows_per_expert,
                            std::span<const char> taken) {
  pieces_.clear();
  std::int64_t first_row = 0;
  for (int expert = 0; expert < shape_.num_experts; ++expert) {
    const std::int64_t rows = rows_per_expert[static_cast<std::size_t>(expert)];
    const std::int64_t blocks = taken[static_cast<std::size_t>(expert)] != 0 ? num_blocks(rows) : 0;
    for (std::int64_t panel = 0; panel < weights_->panels(); panel += piece_panels_) {
      for (std::int64_t block = 0; block < blocks; ++block) {
        const std::int64_t begin = rows * block / blocks, end = rows * (block + 1) / blocks;
        pieces_.push_back({expert, panel, first_row + begin, end - begin});
      }
    }
    first_row += rows;
  }
  // The largest last would leave all but one thread idle at the end. A single thread keeps memory
  // order.
  if (pool_.num_threads() == 1) return;
  std::ranges::sort(pieces_, [](const Piece& a, const Piece& b) {
    return std::tie(b.rows, a.first_row, a.first_panel) <
           std::tie(a.rows, b.first_row, b.first_panel);
  });
}

void PanelGemm::multiply(const Piece& piece, int worker, const Buffer& x, Buffer& y) {
  const std::int64_t element = bytes_of(shape_.dtype);
  const std::int64_t first_col = piece.first_panel * WeightPanels::kPanelWidth;
  const std::int64_t panels = std::min(piece_panels_, weights_->panels() - piece.first_panel);
  Worker& own = workers_[static_cast<std::size_t>(worker)];
  own.rows +=
      panels *
      code_.multiply(
          {.x = static_cast<const std::byte*>(x.data()) + piece.first_row * shape_.k * element,
           .rows = piece.rows,
           .k = shape_.k,
           .panels = weights_->panel(piece.expert, piece.first_panel),
           .num_panels = panels,
           .panel_bytes = weights_->panel_bytes(),
           .y = static_cast<std::byte*>(y.data()) +
                (piece.first_row * shape_.n + first_col) * element,
           .n = shape_.n,
           .cols = std::min(panels * WeightPanels::kPanelWidth, shape_.n - first_col)},
          static_cast<std::byte*>(own.scratch.data()));
}

GemmWork PanelGemm::run(Lane&, const Buffer& x, Buffer& y,
                        std::span<const std::int64_t> rows_per_expert) {
  return run_some(x, y, rows_per_expert, all_);
}

GemmWork PanelGemm::run_some(const Buffer& x, Buffer& y,
                             std::span<const std::int64_t> rows_per_expert,
                             std::span<const char> taken) {
  warm(rows_per_expert);
  list_pieces(rows_per_expert, taken);
  for (Worker& worker : workers_) worker.rows = 0;
  pool_.run(static_cast<std::int64_t>(pieces_.size()), [&](std::int64_t piece, int worker) {
    multiply(pieces_[static_cast<std::size_t>(piece)], worker, x, y);
  });
  GemmWork work;
  work.kernel_calls = pieces_.empty() ? 0 : 1;
  for (const Worker& worker : workers_) {
    work.computed_rows += worker.rows;
    work.workspace_bytes += worker.scratch.bytes();
  }
  work.computed_rows /= weights_->panels();
  for (std::size_t expert = 0; expert < taken.size(); ++expert) {
    if (taken[expert] != 0) work.stored_rows += rows_per_expert[expert];
  }
  work.choice = choice_;
  return work;
}

std::unique_ptr<PanelGemm> make_panel_gemm(const GemmShape& shape, int num_threads,
                                           const TileCode& tiles) {
  const std::string why_not = shape.dtype == DType::bf16 ? tiles.why_not : "AMX has no fp32";
  const PanelCode code = why_not.empty() ? tiles.code : vector_code(shape.dtype);
  auto choice = std::make_shared<GemmChoice>();
  choice->chosen = code.name;
  if (!why_not.empty()) choice->candidates = {{"tiles", {}, 0, why_not}};
  return std::make_unique<PanelGemm>(shape, num_threads, code, choice);
}

}  // namespace epsweep
