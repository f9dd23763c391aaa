// All rows of a piece times its panels, pass by pass (tile_pass.h).
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include <cpuid.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cpu/panel_product.h"
#include "cpu/tile_pass.h"
#include "cpu/weight_panels.h"

namespace epsweep {
namespace {

using namespace tiles;

constexpr std::int64_t kWidth = WeightPanels::kPanelWidth;
constexpr std::int64_t kMostRows = 288, kMostPanels = 16;

// Up to so many tiles of rows the weights come straight from memory: the first block's pass brings
// a panel and a second one finds it in the cache. With more, all passes fetch a share of the next
// panel.
constexpr std::int64_t kStreamedTiles = 4;

// Rows of x and two panels, one that is used and one that is on its way, stay in a level-2 cache of
// 2 MiB (all CPUs with AMX have that much).
constexpr std::int64_t kCacheBytes = 1536 * 1024;

// All rows of a call are cut into tiles of one height; the last ends with the last row and may do
// again what the one before did.
struct RowTiles {
  const std::byte* x = nullptr;
  std::int64_t row_bytes = 0, rows = 0;

  std::int64_t count() const { return (rows + kTileRows - 1) / kTileRows; }
  std::int64_t height() const { return (rows + count() - 1) / count(); }
  std::int64_t first_row(std::int64_t tile) const {
    return std::min(tile * height(), rows - height());
  }
  const std::byte* at(std::int64_t tile) const { return x + first_row(tile) * row_bytes; }
};

// How k is cut so that the rows stay in the cache.
struct Parts {
  std::int64_t steps = 0;           // in all
  std::int64_t steps_per_part = 0;  // the last part may have fewer

  static Parts of(std::int64_t rows, std::int64_t steps) {
    const std::int64_t that_fit = kCacheBytes / (rows * kLineBytes + 2 * kStepBytes);
    const std::int64_t parts = (steps + that_fit - 1) / that_fit;
    return {steps, (steps + parts - 1) / parts};
  }
};

// Three tiles at a time keep weights from passing through twice; otherwise two are faster.
std::int64_t block_tiles_of(std::int64_t tiles) {
  return tiles > 2 && tiles <= kStreamedTiles ? 3 : 2;
}

PendingRows pending_rows(const PanelRows& job, const RowTiles& tiles, std::int64_t first_tile,
                         std::int64_t panel, const std::byte* sums) {
  const std::int64_t first_col = panel * kWidth, cols = job.cols - first_col;
  PendingRows pending{.sums = sums,
                      .tiles = std::min(block_tiles_of(tiles.count()), tiles.count() - first_tile),
                      .height = tiles.height(),
                      .n = job.n};
  pending.written = cols >= kWidth ? ~__mmask32{0} : (__mmask32{1} << cols) - 1;
  for (std::int64_t tile = 0; tile < pending.tiles; ++tile) {
    pending.tile_rows[tile] =
        static_cast<std::uint16_t*>(job.y) + tiles.first_row(first_tile + tile) * job.n + first_col;
  }
  return pending;
}

// The part of a panel that is needed behind this one: the next panel's, the first panel's next
// part, or what lies behind the panels, which is the next piece of the same expert.
const std::byte* weights_after(const PanelRows& job, const Parts& parts, std::int64_t begin,
                               std::int64_t panel) {
  const std::int64_t next_part = begin + parts.steps_per_part;
  if (panel + 1 < job.num_panels) {
    return job.panels + (panel + 1) * job.panel_bytes + begin * kStepBytes;
  }
  if (next_part < parts.steps) return job.panels + next_part * kStepBytes;
  return job.panels + job.num_panels * job.panel_bytes;
}

// Blocks of rows inside panels. Sums of more than one part wait in `sums`, [panel][block].
EPSWEEP_TILES void multiply(const PanelRows& job, const RowTiles& tiles, std::byte* sums) {
  const Parts parts = Parts::of(job.rows, job.panel_bytes / kStepBytes);
  const std::int64_t block_tiles = block_tiles_of(tiles.count());
  const std::int64_t blocks = (tiles.count() + block_tiles - 1) / block_tiles;
  const bool one_part = parts.steps_per_part == parts.steps;
  const bool streams = tiles.count() <= kStreamedTiles;
  const std::int64_t lines = (kStepBytes / kLineBytes + 2 * blocks - 1) / (2 * blocks);
  PendingRows pending;
  set_shapes(tiles.height(), block_tiles);
  for (std::int64_t begin = 0; begin < parts.steps; begin += parts.steps_per_part) {
    const std::int64_t steps = std::min(parts.steps_per_part, parts.steps - begin);
    for (std::int64_t panel = 0; panel < job.num_panels; ++panel) {
      const std::byte* const after = weights_after(job, parts, begin, panel);
      for (std::int64_t block = 0; block < blocks; ++block) {
        const std::int64_t first_tile = block * block_tiles;
        const std::int64_t num_tiles = std::min(block_tiles, tiles.count() - first_tile);
        Pass pass{.row_bytes = tiles.row_bytes,
                  .panel = job.panels + panel * job.panel_bytes + begin * kStepBytes,
                  .steps = steps,
                  .after = after,
                  .fetched = after + block * steps * 2 * lines * kLineBytes,
                  .lines = streams ? 0 : lines};
        for (std::int64_t tile = 0; tile < num_tiles; ++tile) {
          pass.rows[tile] = tiles.at(first_tile + tile) + begin * kLineBytes;
        }
        const std::int64_t index = panel * blocks + block;
        std::byte* const place = sums + (one_part ? index % 2 : index) * kBlockSums;
        begin == 0 ? zero_sums(block_tiles) : load_sums(place, block_tiles);
        streams&& block == 0 ? add_products<true>(block_tiles, num_tiles, pass, pending)
                             : add_products<false>(block_tiles, num_tiles, pass, pending);
        store_sums(place, block_tiles);
        if (begin + steps == parts.steps) {
          pending = pending_rows(job, tiles, first_tile, panel, place);
        }
      }
    }
  }
  pending.write_all();
  _mm_sfence();
  _tile_release();
}

std::int64_t padded_row_bytes(std::int64_t k) {
  return WeightPanels::padded_k({.num_experts = 1, .n = 1, .k = k, .dtype = DType::bf16}) * 2;
}

// Tiles read whole lines of 32 values: rows of other lengths are copied and filled up with zeros.
const std::byte* padded_rows(const PanelRows& job, std::int64_t row_bytes, std::byte* copy) {
  if (row_bytes == job.k * 2) return static_cast<const std::byte*>(job.x);
  const auto bytes = static_cast<std::size_t>(job.k * 2);
  for (std::int64_t row = 0; row < job.rows; ++row) {
    std::byte* const to = copy + row * row_bytes;
    std::memcpy(to, static_cast<const std::byte*>(job.x) + row * job.k * 2, bytes);
    std::memset(to + bytes, 0, static_cast<std::size_t>(row_bytes) - bytes);
  }
  // The compiler does not know that tile loads read memory.
  asm volatile("" ::: "memory");
  return copy;
}

std::int64_t sums_bytes(std::int64_t rows) {
  const std::int64_t block_rows = 2 * kTileRows;
  return (rows + block_rows - 1) / block_rows * kMostPanels * kBlockSums;
}

std::int64_t tile_product(const PanelRows& job, std::byte* scratch) {
  const std::int64_t row_bytes = padded_row_bytes(job.k);
  const RowTiles tiles{padded_rows(job, row_bytes, scratch + sums_bytes(job.rows)), row_bytes,
                       job.rows};
  multiply(job, tiles, scratch);
  return tiles.count() * tiles.height();
}

std::int64_t scratch_bytes(const GemmShape& shape, std::int64_t rows) {
  const std::int64_t row_bytes = padded_row_bytes(shape.k), most = std::min(rows, kMostRows);
  return sums_bytes(most) + (row_bytes == shape.k * 2 ? 0 : most * row_bytes);
}

bool has_instructions() {
  constexpr unsigned kAmxBf16 = 1U << 22U, kAmxTile = 1U << 24U;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  return (edx & kAmxBf16) != 0 && (edx & kAmxTile) != 0 && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bf16");
}

// Linux, Documentation/arch/x86/xstate.rst: "Using XSTATE features in user space applications".
std::string permission_refused() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  if (syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0) return "";
  return fmt::format("the kernel refuses the use of AMX tiles: {}",
                     std::generic_category().message(errno));
}

std::string why_no_tiles() {
  return has_instructions() ? permission_refused() : "this CPU has no AMX for bf16";
}

}  // namespace

const TileCode& tile_code() {
  static const TileCode code{{.name = "tiles",
                              .most_rows = kMostRows,
                              .most_panels = kMostPanels,
                              .multiply = tile_product,
                              .scratch_bytes = scratch_bytes},
                             why_no_tiles()};
  return code;
}

}  // namespace epsweep
