// Own non-blocking exchange. The default, since it is the same algorithm at every group size.
#include "cpu/pairwise.h"

#include <cstddef>

#include "cpu/exchange_rows.h"
#include "mpi/message_set.h"

namespace epsweep {
namespace {

constexpr int kRowsTag = 22;

class Pairwise : public Transport {
 public:
  Pairwise(const EpGroup& group, std::int64_t max_message_bytes)
      : group_(group), messages_(group), offsets_(group.ep_size()) {
    messages_.set_max_message_bytes(max_message_bytes);
  }

  void exchange_counts(Lane& /*lane*/, const Buffer& send, Buffer& recv,
                       std::span<const int> slots_of_rank) override {
    exchange_slot_counts(group_, messages_, send.as<std::int64_t>(), recv.as<std::int64_t>(),
                         slots_of_rank);
  }

  // Receives first, so that rows find their place on arrival; peers in an order that differs from
  // rank to rank, so that they do not all send to the same one. Own rows are copied meanwhile.
  void all_to_all_v(Lane& /*lane*/, const Buffer& send, Buffer& recv,
                    const ExchangeRows& rows) override {
    fill_offsets(group_, send, recv, rows, offsets_);
    const int size = group_.ep_size(), self = group_.ep_rank();
    for (int step = 1; step < size; ++step) {
      const int source = (self - step + size) % size;
      const auto part = static_cast<std::size_t>(source);
      messages_.receive(static_cast<std::byte*>(recv.data()) + offsets_.recv[part] * rows.row_bytes,
                        rows.recv[part] * rows.row_bytes, source, kRowsTag);
    }
    for (int step = 1; step < size; ++step) {
      const int target = (self + step) % size;
      const auto part = static_cast<std::size_t>(target);
      messages_.send(
          static_cast<const std::byte*>(send.data()) + offsets_.send[part] * rows.row_bytes,
          rows.send[part] * rows.row_bytes, target, kRowsTag);
    }
    copy_own_rows(group_, send, recv, rows, offsets_);
    messages_.wait("pairwise exchange of rows");
  }

  void close() override {}

 private:
  const EpGroup& group_;
  MessageSet messages_;
  RowOffsets offsets_;
};

}  // namespace

std::unique_ptr<Transport> make_pairwise(const EpGroup& group, std::int64_t max_message_bytes) {
  return std::make_unique<Pairwise>(group, max_message_bytes);
}

namespace {

const bool kAdded = TransportCatalog::instance().add(
    {.name = "pairwise",
     .backend = "cpu",
     .summary = "own non-blocking sends and receives between all pairs of ranks",
     .make = [](const EpGroup& group, Fabric*) {
       return make_pairwise(group, MessageSet::kMaxMessageBytes);
     }});

}  // namespace
}  // namespace epsweep
