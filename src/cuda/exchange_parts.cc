#include "cuda/exchange_parts.h"

#include <cstddef>

#include <fmt/format.h>

#include "base/error.h"
#include "cuda/cuda_lane.h"

namespace epsweep::cuda {
namespace {

constexpr auto kCountBytes = static_cast<std::int64_t>(sizeof(std::int64_t));

// Parts of one side lie one after the other, or each in its section, and end inside the buffer.
class Side {
 public:
  Side(const char* name, std::int64_t buffer_rows, std::int64_t capacity)
      : name_(name), buffer_rows_(buffer_rows), capacity_(capacity) {}

  // Row at which the next part begins.
  std::int64_t place(std::int64_t rows) {
    const std::int64_t begin = next_, room = buffer_rows_ - begin;
    EPS_EXPECT(rows >= 0 && rows <= room && capacity_ <= room,
               fmt::format("{} rows to {} do not fit behind row {} of a buffer of {}", rows, name_,
                           begin, buffer_rows_));
    EPS_EXPECT(capacity_ == 0 || rows <= capacity_,
               fmt::format("{} rows to {} of a pair of ranks with a capacity of {}", rows, name_,
                           capacity_));
    next_ += capacity_ == 0 ? rows : capacity_;
    return begin;
  }

 private:
  const char* name_;
  std::int64_t buffer_rows_, capacity_, next_ = 0;
};

}  // namespace

void fill_parts(const EpGroup& group, const Buffer& send, const Buffer& recv,
                const ExchangeRows& rows, std::vector<ExchangePart>& parts) {
  const auto size = static_cast<std::size_t>(group.ep_size());
  EPS_EXPECT(rows.row_bytes > 0, "a row has bytes");
  EPS_EXPECT(rows.send.size() == size && rows.recv.size() == size, "one row count per EP rank");
  Side sends("send", send.bytes() / rows.row_bytes, rows.capacity);
  Side receives("receive", recv.bytes() / rows.row_bytes, rows.capacity);
  parts.resize(size);
  for (std::size_t rank = 0; rank < size; ++rank) {
    parts[rank] = {.send_begin = sends.place(rows.send[rank]) * rows.row_bytes,
                   .send_bytes = rows.send[rank] * rows.row_bytes,
                   .recv_begin = receives.place(rows.recv[rank]) * rows.row_bytes,
                   .recv_bytes = rows.recv[rank] * rows.row_bytes};
  }
  const ExchangePart& own = parts[static_cast<std::size_t>(group.ep_rank())];
  EPS_EXPECT(own.send_bytes == own.recv_bytes, "a rank receives from itself what it sends");
}

void fill_count_parts(const EpGroup& group, const Buffer& send, const Buffer& recv,
                      std::span<const int> slots_of_rank, std::vector<ExchangePart>& parts) {
  const auto size = static_cast<std::size_t>(group.ep_size());
  EPS_EXPECT(slots_of_rank.size() == size, "slots of every EP rank");
  const std::int64_t own = slots_of_rank[static_cast<std::size_t>(group.ep_rank())] * kCountBytes;
  std::int64_t begin = 0;
  parts.resize(size);
  for (std::size_t rank = 0; rank < size; ++rank) {
    const std::int64_t bytes = slots_of_rank[rank] * kCountBytes;
    parts[rank] = {.send_begin = begin,
                   .send_bytes = bytes,
                   .recv_begin = static_cast<std::int64_t>(rank) * own,
                   .recv_bytes = own};
    begin += bytes;
  }
  EPS_EXPECT(begin == send.bytes(), "one row count per slot of the group");
  EPS_EXPECT(std::ssize(parts) * own == recv.bytes(), "one row count per own slot and EP rank");
}

void copy_own_part(const EpGroup& group, Lane& lane, const Buffer& send, Buffer& recv,
                   const std::vector<ExchangePart>& parts) {
  const ExchangePart& own = parts[static_cast<std::size_t>(group.ep_rank())];
  if (own.send_bytes == 0) return;
  EPS_CUDA(cudaMemcpyAsync(static_cast<std::byte*>(recv.data()) + own.recv_begin,
                           static_cast<const std::byte*>(send.data()) + own.send_begin,
                           static_cast<std::size_t>(own.send_bytes), cudaMemcpyDeviceToDevice,
                           stream_of(lane)));
}

}  // namespace epsweep::cuda
