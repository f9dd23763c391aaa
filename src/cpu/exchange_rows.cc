#include "cpu/exchange_rows.h"

#include <cstddef>
#include <string>

#include "base/error.h"
#include "cpu/row_streams.h"

namespace epsweep {
namespace {

// Offsets of consecutive parts; their sum must be at most `capacity`.
void fill_side(std::span<const std::int64_t> counts, std::int64_t capacity, const char* side,
               std::vector<std::int64_t>& offsets) {
  EPS_EXPECT(counts.size() == offsets.size(), "one row count per EP rank");
  std::int64_t total = 0;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    offsets[rank] = total;
    EPS_EXPECT(counts[rank] >= 0 && counts[rank] <= capacity - total,
               std::string("rows to ") + side + " do not fit the buffer of " +
                   std::to_string(capacity) + " rows at rank " + std::to_string(rank));
    total += counts[rank];
  }
}

}  // namespace

void fill_offsets(const EpGroup& group, const Buffer& send, const Buffer& recv,
                  const ExchangeRows& rows, RowOffsets& offsets) {
  EPS_EXPECT(rows.row_bytes > 0, "a row has bytes");
  fill_side(rows.send, send.bytes() / rows.row_bytes, "send", offsets.send);
  fill_side(rows.recv, recv.bytes() / rows.row_bytes, "receive", offsets.recv);
  const auto self = static_cast<std::size_t>(group.ep_rank());
  EPS_EXPECT(rows.send[self] == rows.recv[self], "a rank receives from itself what it sends");
}

void copy_own_rows(const EpGroup& group, const Buffer& send, Buffer& recv, const ExchangeRows& rows,
                   const RowOffsets& offsets) {
  const auto self = static_cast<std::size_t>(group.ep_rank());
  if (rows.send[self] == 0) return;
  const auto* from =
      static_cast<const std::byte*>(send.data()) + offsets.send[self] * rows.row_bytes;
  const std::int64_t bytes = rows.send[self] * rows.row_bytes;
  write_row(stores_of(bytes), from, from,
            static_cast<std::byte*>(recv.data()) + offsets.recv[self] * rows.row_bytes, bytes);
  stream_fence();
}

}  // namespace epsweep
