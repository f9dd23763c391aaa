#include "costs/memory.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/local_copy.h"
#include "costs/ffn_work.h"
#include "workload/rank_dispatch.h"

namespace epsweep {
namespace {

constexpr std::int64_t kCountBytes = 8;

std::int64_t most_tokens(const SweepPoint& point) {
  std::int64_t most = 0;
  for (const TokenRange& tokens : token_ranges(point)) most = std::max(most, tokens.size());
  return most;
}

// Rows that travel, from and to the rank, and those in expert order before and after the FFN.
std::int64_t exchange_bytes(const SweepPoint& point, std::int64_t max_recv_rows,
                            const MaxCopies& copies, std::int64_t capacity_rows) {
  const std::int64_t assignments = most_tokens(point) * point.model.top_k;
  const std::int64_t io_row = point.model.expert_io_dim * bytes_of(row_dtype(point.dtype));
  if (point.exchange_unit == ExchangeUnit::assignment) {
    const std::int64_t sections = point.ep_size * capacity_rows;
    const std::int64_t travelling = capacity_rows > 0 ? 2 * sections : assignments + max_recv_rows;
    return 2 * (travelling + max_recv_rows) * io_row;
  }
  const std::int64_t padding = point.ep_size * granule_bytes(io_row);
  return 2 * copies.sent * io_row + 2 * (assignments * kUseBytes + padding) +
         2 * (copies.received + max_recv_rows) * io_row +
         2 * (max_recv_rows * kUseBytes + padding) + max_recv_rows * bytes_of(DType::fp32);
}

// Of transport local_copy: what the rank receives in every routing, as that keeps it, at most.
std::int64_t kept_bytes(const SweepPoint& point, std::int64_t max_slots, std::int64_t max_recv_rows,
                        const MaxCopies& copies) {
  if (point.transport != kLocalCopy) return 0;
  const std::int64_t assignments = most_tokens(point) * point.model.top_k;
  const std::int64_t io_row = point.model.expert_io_dim * bytes_of(row_dtype(point.dtype));
  const std::int64_t counts = point.ep_size * (max_slots + 1) * kCountBytes;
  if (point.exchange_unit == ExchangeUnit::assignment) {
    return point.num_routings() * (counts + (max_recv_rows + assignments) * io_row);
  }
  const std::int64_t uses = max_recv_rows * kUseBytes + point.ep_size * granule_bytes(io_row);
  return point.num_routings() * (counts + (copies.received + copies.sent) * io_row + uses);
}

std::string binary_size(std::int64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (value >= 0x1.0p30) return fmt::format("{:.1f} GiB", value / 0x1.0p30);
  if (value >= 0x1.0p20) return fmt::format("{:.1f} MiB", value / 0x1.0p20);
  return fmt::format("{:.1f} KiB", value / 0x1.0p10);
}

}  // namespace

MemoryNeed memory_need(const SweepPoint& point, std::int64_t max_slots, std::int64_t max_recv_rows,
                       const MaxCopies& copies, std::int64_t capacity_rows) {
  const ModelShape& model = point.model;
  const std::int64_t element = bytes_of(row_dtype(point.dtype));
  const std::int64_t gate_bytes = model.num_experts * model.hidden_dim * bytes_of(DType::fp32);
  const std::int64_t tokens = most_tokens(point);
  const std::int64_t inner_row = (model.gate_up_cols() + model.ffn_dim) * element;

  MemoryNeed need;
  const std::int64_t expert_bytes =
      model.expert_params() * bytes_of(point.dtype) + expert_scale_bytes(model, point.dtype);
  need.weight_bytes = point.layers * (max_slots * expert_bytes + gate_bytes);
  need.activation_bytes =
      point.vary_routing * tokens * model.hidden_dim * element + 2 * tokens * model.top_k * 4 +
      exchange_bytes(point, max_recv_rows, copies, capacity_rows) + max_recv_rows * inner_row +
      tokens * model.expert_io_dim * bytes_of(DType::fp32) +
      kept_bytes(point, max_slots, max_recv_rows, copies);
  return need;
}

std::string size_text(std::int64_t bytes) {
  if (bytes < std::int64_t{1} << 30) return binary_size(bytes);
  return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / 0x1.0p30);
}

std::optional<std::string> memory_shortfall(const MemoryNeed& need, std::int64_t available_bytes) {
  const std::int64_t missing = need.total() - available_bytes;
  if (missing <= 0) return std::nullopt;
  return fmt::format("needs {} per rank, {} available: {} short", binary_size(need.total()),
                     binary_size(available_bytes), binary_size(missing));
}

}  // namespace epsweep
