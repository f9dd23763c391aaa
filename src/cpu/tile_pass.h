// One pass of AMX over a few rows and a part of a panel (x86-64 only). A tile register holds 16
// rows of 64 bytes; TDPBF16PS adds to 16 x 16 sums the products of 16 rows of 32 bf16 values and 32
// x 16 weights. Instruction reference: Intel 64 and IA-32 Software Developer's Manual, volume 2,
// and "Programming with Intel AMX" in volume 1.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <immintrin.h>

// Files with such functions are compiled for any x86-64; they run only where tile_code() found the
// instructions.
#define EPSWEEP_TILES [[gnu::target("amx-tile,amx-bf16,avx512f,avx512bw,avx512vl,avx512bf16")]]
#define EPSWEEP_TILES_INLINE EPSWEEP_TILES [[gnu::always_inline]] inline

namespace epsweep::tiles {

inline constexpr std::int64_t kTileRows = 16, kTileBytes = 1024;
inline constexpr std::int64_t kStepBytes = 2048;  // of a panel: 32 of k for its 32 columns
inline constexpr std::int64_t kLineBytes = 64;
// Rows that are multiplied together: up to three tiles of them times a panel's two of columns.
inline constexpr std::int64_t kBlockTiles = 3, kBlockSums = 2 * kBlockTiles * kTileBytes;

// Ahead of the reads, in the level-1 and the level-2 cache.
inline constexpr std::int64_t kNearBytes = 2048, kFarBytes = 32768;

// Blocks of three tiles of rows. 0 to 5: sums, 3 * column + row; 6: weights; 7: rows. Blocks of two
// need neither 2 nor 5 for sums: rows are in 7 and 2, weights in 6 and 5.
EPSWEEP_TILES inline void set_shapes(std::int64_t height, std::int64_t block_tiles) {
  struct alignas(64) {
    std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
    std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    std::uint8_t rows[16] = {};
  } shapes;
  std::fill_n(shapes.rows, 8, static_cast<std::uint8_t>(height));
  shapes.rows[6] = kTileRows;
  if (block_tiles < 3) shapes.rows[5] = kTileRows;
  // _tile_loadconfig() of GCC 12 tells the compiler of 8 of these bytes only.
  asm volatile("ldtilecfg %0" : : "m"(shapes));
}

// Weights on their way: lines that are asked for one after the other, each after a multiplication
// by one, since prefetches issued at once are not all carried out. Measured, tile loads of cold
// weights: 14.6 GB/s without the pause, 18.4 with it; a plain read loop has 17.7.
class WeightStream {
 public:
  explicit WeightStream(const std::byte* place) : place_(place) { asm volatile("" : "+r"(one_)); }

  EPSWEEP_TILES_INLINE void stream_half_step(std::int64_t far_bytes) {
#pragma GCC unroll 16
    for (int line = 0; line < 16; ++line) {
      _mm_prefetch(place_ + kNearBytes, _MM_HINT_T0);
      _mm_prefetch(place_ + far_bytes, _MM_HINT_T1);
      asm volatile("add $64, %0\n\timul %1, %0" : "+r"(place_) : "r"(one_));
    }
  }
  EPSWEEP_TILES_INLINE void fetch(std::int64_t lines) {
    for (std::int64_t line = 0; line < lines; ++line) {
      _mm_prefetch(place_, _MM_HINT_T1);
      asm volatile("add $64, %0\n\timul %1, %0\n\timul %1, %0" : "+r"(place_) : "r"(one_));
    }
  }

 private:
  const std::byte* place_;
  std::int64_t one_ = 1;
};

// Sums on their way to bf16 rows of y: one row with every step of what is computed next.
struct PendingRows {
  const std::byte* sums = nullptr;
  std::int64_t tiles = 0, height = 0;
  std::uint16_t* tile_rows[kBlockTiles] = {};  // in y
  std::int64_t n = 0;
  __mmask32 written = 0;  // columns
  std::int64_t tile = 0, row = 0;

  EPSWEEP_TILES_INLINE bool any() const { return tile < tiles; }
  EPSWEEP_TILES_INLINE void write_row() {
    const std::byte* const from = sums + tile * kTileBytes + row * kLineBytes;
    const __m512 low = _mm512_load_ps(from);
    const __m512 high = _mm512_load_ps(from + kBlockTiles * kTileBytes);
    const auto both = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
    std::uint16_t* const to = tile_rows[tile] + row * n;
    // Whole lines pass the caches by: read for ownership, they slow the stream of weights by a
    // fifth with 32 rows, and the next reader comes after megabytes of weights.
    if (written == ~__mmask32{0} && reinterpret_cast<std::uintptr_t>(to) % kLineBytes == 0) {
      _mm512_stream_si512(reinterpret_cast<__m512i*>(to), both);
    } else {
      _mm512_mask_storeu_epi16(to, written, both);
    }
    if (++row < height) return;
    row = 0;
    ++tile;
  }
  EPSWEEP_TILES_INLINE void write_all() {
    while (any()) write_row();
  }
};

// One pass of a block of rows over steps of a panel. Either the weights come from memory and are
// fetched a little ahead, up to and into what is `after` them; or they are in the cache and
// 2 * `lines` of those that are needed next are fetched with every step, from `fetched` on.
struct Pass {
  const std::byte* rows[kBlockTiles] = {};
  std::int64_t row_bytes = 0;
  const std::byte* panel = nullptr;
  std::int64_t steps = 0;
  const std::byte* after = nullptr;
  const std::byte* fetched = nullptr;
  std::int64_t lines = 0;

  std::int64_t far_bytes(std::int64_t step) const {
    const std::int64_t left = (steps - step) * kStepBytes;
    return left > kFarBytes ? kFarBytes : after - (panel + steps * kStepBytes) + kFarBytes;
  }
};

// Rows of every tile are loaded again for the second column, but the last ones, which are there.
template <int kTiles>
struct BlockOfThree {
  EPSWEEP_TILES_INLINE static void add_first_column(const Pass& pass, std::int64_t x,
                                                    const std::byte* weights) {
    _tile_loadd(6, weights, 2 * kLineBytes);
    _tile_loadd(7, pass.rows[0] + x, pass.row_bytes);
    _tile_dpbf16ps(0, 7, 6);
    if (kTiles > 1) {
      _tile_loadd(7, pass.rows[1] + x, pass.row_bytes);
      _tile_dpbf16ps(1, 7, 6);
    }
    if (kTiles > 2) {
      _tile_loadd(7, pass.rows[2] + x, pass.row_bytes);
      _tile_dpbf16ps(2, 7, 6);
    }
  }
  EPSWEEP_TILES_INLINE static void add_second_column(const Pass& pass, std::int64_t x,
                                                     const std::byte* weights) {
    _tile_loadd(6, weights, 2 * kLineBytes);
    if (kTiles > 2) {
      _tile_dpbf16ps(5, 7, 6);
      _tile_loadd(7, pass.rows[1] + x, pass.row_bytes);
    }
    if (kTiles > 1) {
      _tile_dpbf16ps(4, 7, 6);
      _tile_loadd(7, pass.rows[0] + x, pass.row_bytes);
    }
    _tile_dpbf16ps(3, 7, 6);
  }
};

template <int kTiles>
struct BlockOfTwo {
  EPSWEEP_TILES_INLINE static void add_first_column(const Pass& pass, std::int64_t x,
                                                    const std::byte* weights) {
    _tile_loadd(6, weights, 2 * kLineBytes);
    _tile_loadd(7, pass.rows[0] + x, pass.row_bytes);
    _tile_dpbf16ps(0, 7, 6);
    if (kTiles == 1) return;
    _tile_loadd(2, pass.rows[1] + x, pass.row_bytes);
    _tile_dpbf16ps(1, 2, 6);
  }
  EPSWEEP_TILES_INLINE static void add_second_column(const Pass&, std::int64_t,
                                                     const std::byte* weights) {
    _tile_loadd(5, weights, 2 * kLineBytes);
    _tile_dpbf16ps(3, 7, 5);
    if (kTiles > 1) _tile_dpbf16ps(4, 2, 5);
  }
};

template <typename Block, bool kStreams>
EPSWEEP_TILES inline void add_steps(const Pass& pass, PendingRows& pending) {
  WeightStream weights(kStreams ? pass.panel : pass.fetched);
  for (std::int64_t step = 0; step < pass.steps; ++step) {
    const std::int64_t far_bytes = kStreams ? pass.far_bytes(step) : 0;
    const std::byte* const columns = pass.panel + step * kStepBytes;
    kStreams ? weights.stream_half_step(far_bytes) : weights.fetch(pass.lines);
    Block::add_first_column(pass, step * kLineBytes, columns);
    if (pending.any()) pending.write_row();
    kStreams ? weights.stream_half_step(far_bytes) : weights.fetch(pass.lines);
    Block::add_second_column(pass, step * kLineBytes, columns + kLineBytes);
  }
  pending.write_all();
}

template <bool kStreams>
EPSWEEP_TILES inline void add_products(std::int64_t block_tiles, std::int64_t tiles,
                                       const Pass& pass, PendingRows& pending) {
  if (block_tiles < 3) {
    tiles == 1 ? add_steps<BlockOfTwo<1>, kStreams>(pass, pending)
               : add_steps<BlockOfTwo<2>, kStreams>(pass, pending);
    return;
  }
  if (tiles == 1) return add_steps<BlockOfThree<1>, kStreams>(pass, pending);
  if (tiles == 2) return add_steps<BlockOfThree<2>, kStreams>(pass, pending);
  add_steps<BlockOfThree<3>, kStreams>(pass, pending);
}

EPSWEEP_TILES inline void zero_sums(std::int64_t block_tiles) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(3);
  _tile_zero(4);
  if (block_tiles < 3) return;
  _tile_zero(2);
  _tile_zero(5);
}

EPSWEEP_TILES inline void load_sums(const std::byte* sums, std::int64_t block_tiles) {
  _tile_loadd(0, sums, kLineBytes);
  _tile_loadd(1, sums + kTileBytes, kLineBytes);
  _tile_loadd(3, sums + 3 * kTileBytes, kLineBytes);
  _tile_loadd(4, sums + 4 * kTileBytes, kLineBytes);
  if (block_tiles < 3) return;
  _tile_loadd(2, sums + 2 * kTileBytes, kLineBytes);
  _tile_loadd(5, sums + 5 * kTileBytes, kLineBytes);
}

EPSWEEP_TILES inline void store_sums(std::byte* sums, std::int64_t block_tiles) {
  _tile_stored(0, sums, kLineBytes);
  _tile_stored(1, sums + kTileBytes, kLineBytes);
  _tile_stored(3, sums + 3 * kTileBytes, kLineBytes);
  _tile_stored(4, sums + 4 * kTileBytes, kLineBytes);
  if (block_tiles < 3) return;
  _tile_stored(2, sums + 2 * kTileBytes, kLineBytes);
  _tile_stored(5, sums + 5 * kTileBytes, kLineBytes);
}

}  // namespace epsweep::tiles
