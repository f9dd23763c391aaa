// Exchange through the host: device to page-locked memory, MPI between the hosts' memories, and
// back. NCCL wants a device for each rank; this lets several ranks share one.
#include "cuda/mpi_staged.h"

#include <algorithm>
#include <cstddef>

#include "cuda/cuda_lane.h"
#include "cuda/cuda_memory.h"
#include "cuda/exchange_parts.h"
#include "mpi/message_set.h"

namespace epsweep::cuda {
namespace {

constexpr int kRowsTag = 23;

std::span<std::int64_t> counts_in(Buffer& host, const Buffer& device) {
  return host.as<std::int64_t>().first(static_cast<std::size_t>(device.bytes()) /
                                       sizeof(std::int64_t));
}

// The host takes part, so calls block: MPI may send only what has arrived in host memory, and only
// the host can call it. Each exchange waits once for the lane, which means for everything enqueued
// before and for the copies to the host, then for the messages; the copies back to the device are
// enqueued. The stage's marks stand around all of it: its time is what the exchange costs.
class MpiStaged final : public Transport {
 public:
  MpiStaged(const EpGroup& group, std::int64_t max_message_bytes)
      : group_(group), messages_(group), parts_(static_cast<std::size_t>(group.ep_size())) {
    messages_.set_max_message_bytes(max_message_bytes);
  }

  void exchange_counts(Lane& lane, const Buffer& send, Buffer& recv,
                       std::span<const int> slots_of_rank) override {
    fill_count_parts(group_, send, recv, slots_of_rank, parts_);
    grow(sent_, send.bytes());
    to_host(lane, send, 0, send.bytes());
    // Also until the last exchange's copies have left received_.
    lane.synchronize();
    grow(received_, recv.bytes());
    exchange_slot_counts(group_, messages_, counts_in(sent_, send), counts_in(received_, recv),
                         slots_of_rank);
    to_device(lane, recv, 0, recv.bytes());
    lane.synchronize();
  }

  void all_to_all_v(Lane& lane, const Buffer& send, Buffer& recv,
                    const ExchangeRows& rows) override {
    fill_parts(group_, send, recv, rows, parts_);
    copy_own_part(group_, lane, send, recv, parts_);
    const ExchangePart &own = parts_[static_cast<std::size_t>(group_.ep_rank())],
                       &last = parts_.back();
    const std::int64_t send_end = last.send_begin + last.send_bytes;
    const std::int64_t recv_end = last.recv_begin + last.recv_bytes;
    const std::int64_t own_send_end = own.send_begin + own.send_bytes;
    const std::int64_t own_recv_end = own.recv_begin + own.recv_bytes;
    // Of the largest layer after the checks before timing, which run every layer.
    grow(sent_, send_end);
    to_host(lane, send, 0, own.send_begin);
    to_host(lane, send, own_send_end, send_end - own_send_end);
    lane.synchronize();
    grow(received_, recv_end);
    exchange_messages();
    to_device(lane, recv, 0, own.recv_begin);
    to_device(lane, recv, own_recv_end, recv_end - own_recv_end);
  }

  void close() override {}

 private:
  // Page-locked, so that copies need not pass through the driver's own buffer.
  static void grow(Buffer& buffer, std::int64_t bytes) {
    if (buffer.bytes() < bytes) buffer = make_pinned_buffer(bytes);
  }

  void to_host(Lane& lane, const Buffer& send, std::int64_t begin, std::int64_t bytes) {
    if (bytes == 0) return;
    EPS_CUDA(cudaMemcpyAsync(static_cast<std::byte*>(sent_.data()) + begin,
                             static_cast<const std::byte*>(send.data()) + begin,
                             static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost,
                             stream_of(lane)));
  }
  void to_device(Lane& lane, Buffer& recv, std::int64_t begin, std::int64_t bytes) {
    if (bytes == 0) return;
    EPS_CUDA(cudaMemcpyAsync(static_cast<std::byte*>(recv.data()) + begin,
                             static_cast<const std::byte*>(received_.data()) + begin,
                             static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice,
                             stream_of(lane)));
  }

  // Receives first, so that rows find their place on arrival; peers in an order that differs from
  // rank to rank, so that they do not all send to the same one.
  void exchange_messages() {
    const int size = group_.ep_size(), self = group_.ep_rank();
    for (int step = 1; step < size; ++step) {
      const int source = (self - step + size) % size;
      const ExchangePart& part = parts_[static_cast<std::size_t>(source)];
      messages_.receive(static_cast<std::byte*>(received_.data()) + part.recv_begin,
                        part.recv_bytes, source, kRowsTag);
    }
    for (int step = 1; step < size; ++step) {
      const int target = (self + step) % size;
      const ExchangePart& part = parts_[static_cast<std::size_t>(target)];
      messages_.send(static_cast<const std::byte*>(sent_.data()) + part.send_begin, part.send_bytes,
                     target, kRowsTag);
    }
    messages_.wait("host-staged exchange of rows");
  }

  const EpGroup& group_;
  MessageSet messages_;
  std::vector<ExchangePart> parts_;
  // What leaves and what arrives; at the offsets of the device's buffers, own rows left out.
  Buffer sent_, received_;
};

}  // namespace

std::unique_ptr<Transport> make_mpi_staged(const EpGroup& group, std::int64_t max_message_bytes) {
  return std::make_unique<MpiStaged>(group, max_message_bytes);
}

namespace {

const bool kAdded = TransportCatalog::instance().add(
    {.name = "mpi_staged",
     .backend = "cuda",
     .summary = "through page-locked host memory and MPI; ranks may share a device",
     .make = [](const EpGroup& group, Fabric*) {
       return make_mpi_staged(group, MessageSet::kMaxMessageBytes);
     }});

}  // namespace
}  // namespace epsweep::cuda
