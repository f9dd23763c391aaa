// Where the rows of every expert lie in a buffer that has room for padding.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cuda/kernels/expert_slots.h"

namespace epsweep::cuda {

// Rows that `rows` take in tiles of `tile_rows`: none for none.
constexpr std::int64_t in_tiles(std::int64_t rows, std::int64_t tile_rows) {
  return (rows + tile_rows - 1) / tile_rows * tile_rows;
}

class SlotPlan {
 public:
  explicit SlotPlan(int num_experts);

  // Puts experts behind each other, each with room_of(its rows) rows of room. Allocates nothing.
  // Throws RunError where rows do not fit 32 bits.
  template <typename Room>
  void lay_out(std::span<const std::int64_t> rows_per_expert, const Room& room_of) {
    start();
    for (const std::int64_t rows : rows_per_expert) add(rows, room_of(rows));
    finish();
  }

  // Launches that cover all experts with rows.
  std::span<const ExpertSlots> parts() const { return {parts_.data(), num_parts_}; }
  std::int64_t rows() const { return row_; }
  std::int64_t stored_rows() const { return slot_; }

 private:
  void start();
  void add(std::int64_t rows, std::int64_t room);
  void finish();
  void close_part();

  std::vector<ExpertSlots> parts_;  // capacity for all experts
  std::size_t num_parts_ = 0;
  std::int64_t row_ = 0, slot_ = 0;
  int expert_ = 0;
};

}  // namespace epsweep::cuda
