// What exchange unit `rank` must give, to the bit, worked out from a run with unit `assignment`.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bfloat16.h"
#include "cpu/row_kernels.h"
#include "support/forwarding_backend.h"
#include "support/forwarding_ops.h"
#include "support/layer_fixture.h"

namespace epsweep {

// The results that came back for a layer's assignments, and their router weights.
struct AssignmentRows {
  std::vector<float> rows;     // [own tokens * top_k][cols]
  std::vector<float> weights;  // [own tokens * top_k]
};

// Keeps what weighted_reduce() is given, one entry per layer.
class RecordingOps final : public ForwardingOps {
 public:
  using ForwardingOps::ForwardingOps;

  void weighted_reduce(Lane& lane, DType dtype, int top_k, const RowIndex& position,
                       const Buffer& weights, std::int64_t cols, const Buffer& in,
                       Buffer& out) override {
    AssignmentRows layer;
    const auto rows = position.buffer->as<std::int32_t>();
    for (const std::int32_t row : rows.first(static_cast<std::size_t>(position.count))) {
      for (std::int64_t c = 0; c < cols; ++c) {
        const auto at = static_cast<std::size_t>(row * cols + c);
        layer.rows.push_back(dtype == DType::fp32 ? in.as<float>()[at]
                                                  : float_of_bf16(in.as<std::uint16_t>()[at]));
      }
    }
    layer.weights.assign(weights.as<float>().begin(), weights.as<float>().end());
    of_layer.push_back(std::move(layer));
    ForwardingOps::weighted_reduce(lane, dtype, top_k, position, weights, cols, in, out);
  }
  std::vector<AssignmentRows> of_layer;
};

class RecordingBackend final : public ForwardingBackend {
 public:
  RecordingBackend() : ops_(ForwardingBackend::token_ops()) {}
  TokenOps& token_ops() override { return ops_; }
  const std::vector<AssignmentRows>& of_layer() const { return ops_.of_layer; }

 private:
  RecordingOps ops_;
};

// One token's row with unit `rank`: its assignments' rows, weighted and added in order of choice
// for each destination rank, stored as the dtype, and these sums added by ascending rank. Uses the
// backend's own multiply-add, which is free to fuse.
inline std::vector<float> row_of_unit_rank(const SweepPoint& point, const AssignmentRows& all,
                                           std::int64_t token,
                                           std::span<const int> rank_of_choice) {
  const auto cols = static_cast<std::size_t>(point.model.expert_io_dim);
  std::vector<float> row(cols);
  for (int rank = 0; rank < point.ep_size; ++rank) {
    if (std::ranges::find(rank_of_choice, rank) == rank_of_choice.end()) continue;
    std::vector<std::int32_t> rows;
    std::vector<float> weights, partial(cols);
    for (std::size_t j = 0; j < rank_of_choice.size(); ++j) {
      if (rank_of_choice[j] != rank) continue;
      const auto assignment = static_cast<std::size_t>(token) * rank_of_choice.size() + j;
      rows.push_back(static_cast<std::int32_t>(assignment));
      weights.push_back(all.weights[assignment]);
    }
    sum_rows(RowSum<float>{.in = all.rows.data(),
                           .stride = std::ssize(partial),
                           .rows = rows,
                           .weights = weights.data()},
             std::ssize(partial), partial.data());
    for (std::size_t c = 0; c < cols; ++c) {
      row[c] += point.dtype == DType::fp32 ? partial[c] : float_of_bf16(bf16_of_float(partial[c]));
    }
  }
  return row;
}

}  // namespace epsweep
