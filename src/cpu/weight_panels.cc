#include "cpu/weight_panels.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "cpu/cache_flush.h"
#include "cpu/cpu_backend.h"

namespace epsweep {
namespace {

constexpr std::int64_t kWidth = WeightPanels::kPanelWidth;
constexpr std::int64_t kBf16Block = 32, kFp32Block = 16;  // of k

std::int64_t up_to(std::int64_t multiple, std::int64_t value) {
  return (value + multiple - 1) / multiple * multiple;
}

// rows [cols][k] to [k / group][kWidth][group]; what is beyond cols and k stays as it is.
template <typename Element>
void interleave(const Element* rows, std::int64_t cols, std::int64_t k, std::int64_t group,
                Element* out) {
  for (std::int64_t col = 0; col < cols; ++col) {
    for (std::int64_t i = 0; i < k; ++i) {
      out[(i / group * kWidth + col) * group + i % group] = rows[col * k + i];
    }
  }
}

}  // namespace

WeightPanels::WeightPanels(const GemmShape& shape)
    : shape_(shape),
      panels_(up_to(kWidth, shape.n) / kWidth),
      panel_bytes_(padded_k(shape) * kWidth * bytes_of(shape.dtype)) {}

std::int64_t WeightPanels::padded_k(const GemmShape& shape) {
  return up_to(shape.dtype == DType::bf16 ? kBf16Block : kFp32Block, shape.k);
}

void WeightPanels::load(const WeightSource& source, ThreadPool& pool) {
  weights_ = make_cpu_buffer(bytes());
  const std::int64_t row_bytes = shape_.k * bytes_of(shape_.dtype);
  std::vector<Buffer> plain;
  for (int worker = 0; worker < pool.num_threads(); ++worker) {
    plain.push_back(make_cpu_buffer(std::min(kWidth, shape_.n) * row_bytes));
  }
  pool.run(shape_.num_experts * panels_, [&](std::int64_t item, int worker) {
    const auto expert = static_cast<int>(item / panels_);
    const std::int64_t first_col = item % panels_ * kWidth;
    const std::int64_t cols = std::min(kWidth, shape_.n - first_col);
    Buffer& rows = plain[static_cast<std::size_t>(worker)];
    fill_payload(source(expert), first_col * shape_.k, cols * shape_.k, shape_.dtype, rows.data());
    auto* const place = static_cast<std::byte*>(weights_.data()) + item * panel_bytes_;
    std::memset(place, 0, static_cast<std::size_t>(panel_bytes_));
    if (shape_.dtype == DType::bf16) {
      interleave(rows.as<std::uint16_t>().data(), cols, shape_.k, 2,
                 reinterpret_cast<std::uint16_t*>(place));
    } else {
      interleave(rows.as<float>().data(), cols, shape_.k, 1, reinterpret_cast<float*>(place));
    }
  });
}

const std::byte* WeightPanels::panel(int expert, std::int64_t index) const {
  return static_cast<const std::byte*>(weights_.data()) + (expert * panels_ + index) * panel_bytes_;
}

void WeightPanels::flush(int num_experts) const {
  flush_from_caches(weights_.data(), num_experts * expert_bytes());
}

}  // namespace epsweep
