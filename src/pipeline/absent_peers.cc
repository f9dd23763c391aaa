#include "pipeline/absent_peers.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "workload/payload.h"
#include "workload/rank_dispatch.h"

namespace epsweep {
namespace {

bool is_unit_rank(const RankWork& work) {
  return work.point.exchange_unit == ExchangeUnit::rank;
}

std::int64_t row_bytes_of(const RankWork& work) {
  return work.point.model.expert_io_dim * bytes_of(row_dtype(work.point.dtype));
}

// Of both directions: what dispatch brings and what combine does.
std::int64_t most_rows(const RankWork& work) {
  if (is_unit_rank(work)) return std::max(work.max_recv_copies(), work.max_sent_copies());
  return std::max(work.max_recv_rows(), work.own_tokens().size() * work.point.model.top_k);
}

// Uses of all messages, every message padded at most.
std::int64_t most_use_bytes(const RankWork& work) {
  const std::int64_t granule = granule_bytes(row_bytes_of(work));
  return (work.max_recv_rows() * kUseBytes / granule + work.point.ep_size) * granule;
}

// What an exchange counts in, the smallest of both.
std::int64_t unit_bytes(const RankWork& work) {
  return is_unit_rank(work) ? granule_bytes(row_bytes_of(work)) : row_bytes_of(work);
}

std::int64_t message_bytes(const RankWork& work) {
  return most_rows(work) * row_bytes_of(work) + most_use_bytes(work);
}

std::int64_t num_units(const RankWork& work) {
  const std::int64_t bytes =
      is_unit_rank(work) ? message_bytes(work) : most_rows(work) * row_bytes_of(work);
  return bytes / unit_bytes(work);
}

// The local slot of every row in expert order.
std::vector<std::int32_t> slots_of_rows(const DispatchPlan& plan) {
  std::vector<std::int32_t> slots;
  for (std::size_t slot = 0; slot < plan.rows_per_expert.size(); ++slot) {
    slots.insert(slots.end(), static_cast<std::size_t>(plan.rows_per_expert[slot]),
                 static_cast<std::int32_t>(slot));
  }
  return slots;
}

}  // namespace

std::int64_t absent_peer_bytes(const RankWork& work) {
  const std::int64_t index = num_units(work) * static_cast<std::int64_t>(sizeof(std::int32_t));
  const std::int64_t rows = most_rows(work) * row_bytes_of(work);
  return rows + index + (is_unit_rank(work) ? message_bytes(work) : 0);
}

AbsentPeers::AbsentPeers(const RankWork& work, Backend& backend)
    : work_(work), backend_(backend), in_order_(num_units(work), backend) {
  EPS_EXPECT(work.capacity_rows == 0, "messages of fixed capacity need their peers");
  const DType dtype = row_dtype(work.point.dtype);
  const PayloadMatrix values = token_matrix(work.point.seed, work.point.model.expert_io_dim);
  const auto fill = [&](std::int64_t bytes) {
    Buffer buffer = backend.make_buffer(bytes);
    backend.fill(buffer, values.stream(), 0, bytes / bytes_of(dtype), dtype);
    return buffer;
  };
  rows_ = fill(most_rows(work) * row_bytes_of(work));
  std::iota(in_order_.host.begin(), in_order_.host.end(), 0);
  in_order_.upload(std::ssize(in_order_.host), backend);
  if (!is_unit_rank(work)) return;
  messages_ = fill(message_bytes(work));
  without_uses_.resize(static_cast<std::size_t>(messages_.bytes()));
  backend.copy_to_host(messages_, without_uses_.data(), messages_.bytes());
}

void AbsentPeers::begin_layer(int routing) {
  routing_ = routing;
  dispatched_ = false;
  if (!is_unit_rank(work_) || uses_of_routing_ == routing) return;
  write_uses(routing);
  uses_of_routing_ = routing;
}

// In every message the uses follow the copies, from a granule's begin. Router weights are all 1 /
// top_k.
void AbsentPeers::write_uses(int routing) {
  const auto at = static_cast<std::size_t>(routing);
  const DispatchPlan& plan = work_.dispatch[at];
  const RankDispatch& copies = work_.rank_dispatch[at];
  const std::vector<std::int32_t> slot_of_row = slots_of_rows(plan);
  const std::int64_t row_bytes = row_bytes_of(work_), granule = granule_bytes(row_bytes);
  const float weight = 1.0F / static_cast<float>(plan.top_k);
  std::vector<std::byte> image = without_uses_;
  std::byte* to = image.data();
  std::size_t use = 0, next_copy = 0;
  for (std::size_t source = 0; source < copies.recv_copies.size(); ++source) {
    to += copies.recv_copies[source] * row_bytes;
    const std::int64_t uses = plan.recv_rows[source];
    for (std::int64_t i = 0; i < uses; ++i, ++use) {
      const bool is_first = next_copy < copies.first_use_of_copy.size() &&
                            copies.first_use_of_copy[next_copy] == static_cast<std::int32_t>(use);
      if (is_first) ++next_copy;
      const std::int32_t word =
          use_word(slot_of_row[static_cast<std::size_t>(copies.row_of_use[use])],
                   is_first ? UsePlace::first_of_copy : UsePlace::later);
      std::memcpy(to + i * kUseBytes, &word, sizeof(word));
      std::memcpy(to + i * kUseBytes + sizeof(word), &weight, sizeof(weight));
    }
    to += use_granules(uses, granule) * granule;
  }
  backend_.copy_from_host(image.data(), messages_, messages_.bytes());
}

void AbsentPeers::exchange_counts(Lane& lane, const Buffer& /*send*/, Buffer& recv,
                                  std::span<const int> slots_of_rank) {
  const auto at = static_cast<std::size_t>(routing_);
  const DispatchPlan& plan = work_.dispatch[at];
  const auto num_local = static_cast<std::size_t>(work_.num_own_slots());
  const auto announced = static_cast<std::size_t>(slots_of_rank[static_cast<std::size_t>(
      work_.ep_rank)]);  // the number of copies may ride behind
  EPS_EXPECT(announced == num_local + (is_unit_rank(work_) ? 1U : 0U), "counts of unknown things");
  std::vector<std::int64_t> counts;
  for (std::size_t source = 0; source < plan.recv_rows.size(); ++source) {
    const auto own =
        plan.recv_rows_per_slot.begin() + static_cast<std::ptrdiff_t>(source * num_local);
    counts.insert(counts.end(), own, own + static_cast<std::ptrdiff_t>(num_local));
    if (is_unit_rank(work_)) counts.push_back(work_.rank_dispatch[at].recv_copies[source]);
  }
  lane.synchronize();
  backend_.copy_from_host(counts.data(), recv, recv.bytes());
}

void AbsentPeers::all_to_all_v(Lane& lane, const Buffer& /*send*/, Buffer& recv,
                               const ExchangeRows& rows) {
  const std::int64_t count = std::accumulate(rows.recv.begin(), rows.recv.end(), std::int64_t{0});
  const bool carries_uses = is_unit_rank(work_) && !dispatched_;
  dispatched_ = true;
  backend_.token_ops().gather_rows(lane, carries_uses ? messages_ : rows_,
                                   {.buffer = &in_order_.device(), .count = count}, rows.row_bytes,
                                   recv);
}

}  // namespace epsweep
