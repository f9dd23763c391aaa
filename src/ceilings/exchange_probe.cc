#include "ceilings/exchange_probe.h"

#include <algorithm>
#include <memory>

#include "base/host_probe.h"
#include "base/payload_stream.h"
#include "base/statistics.h"

namespace epsweep {
namespace {

constexpr std::int64_t kRowBytes = 64;
constexpr std::int64_t kMostRows = (std::int64_t{4} << 20) / kRowBytes;
constexpr std::int64_t kGrowth = 4;
constexpr int kWarmup = 2, kRepeats = 9;
constexpr std::int64_t kMemoryShare = 16;

class ExchangeProbe {
 public:
  ExchangeProbe(Backend& backend, Transport& transport, const ExchangePlace& place,
                const RanksTogether& ranks)
      : backend_(backend),
        transport_(transport),
        place_(place),
        ranks_(ranks),
        lane_(backend.make_lane()),
        timeline_(backend.make_timeline(2)) {}

  ExchangeTimes run(double budget_s) {
    ExchangeTimes times;
    times.count_seconds = exchange_counts();
    const std::int64_t most_rows = ranks_least(rows_that_fit());
    make_buffers(most_rows);
    for (std::int64_t rows = 1; rows <= most_rows; rows *= kGrowth) {
      times.ladder.push_back({.bytes_per_peer = rows * kRowBytes, .seconds = exchange_rows(rows)});
      const double median_s = nearest_rank(times.ladder.back().seconds, 0.5);
      const std::int64_t slowest_ns = ranks_.all_max(nanoseconds(median_s));
      if (slowest_ns * kGrowth * (kWarmup + kRepeats) > nanoseconds(budget_s)) break;
    }
    return times;
  }

 private:
  std::int64_t rows_that_fit() const {
    const std::int64_t room = backend_.describe().memory_bytes / kMemoryShare;
    return std::min(kMostRows, room / (place_.ep_size * kRowBytes));
  }
  std::int64_t ranks_least(std::int64_t value) const { return -ranks_.all_max(-value); }

  void make_buffers(std::int64_t rows) {
    const std::int64_t bytes = place_.ep_size * rows * kRowBytes;
    send_ = backend_.make_buffer(bytes);
    recv_ = backend_.make_buffer(bytes);
    backend_.fill(send_, {.words = RandomStream(1, Stream::check), .unit = 1.0F}, 0, bytes / 2,
                  DType::bf16);
    backend_.poison(recv_);  // touches it
  }

  // Own rows stay where they are: the bare exchange is what goes to other ranks.
  std::vector<double> exchange_rows(std::int64_t rows) {
    std::vector<std::int64_t> of_rank(static_cast<std::size_t>(place_.ep_size), rows);
    of_rank[static_cast<std::size_t>(place_.ep_rank)] = 0;
    const ExchangeRows counts = {.send = of_rank,
                                 .recv = of_rank,
                                 .row_bytes = kRowBytes,
                                 .capacity = place_.capacity == Capacity::fixed ? rows : 0};
    return repeat([&] { transport_.all_to_all_v(*lane_, send_, recv_, counts); });
  }

  std::vector<double> exchange_counts() {
    const std::int64_t bytes = place_.ep_size * 8;
    const std::vector<std::int64_t> host(static_cast<std::size_t>(place_.ep_size), 1);
    Buffer send = backend_.make_buffer(bytes), recv = backend_.make_buffer(bytes);
    backend_.copy_from_host(host.data(), send, bytes);
    const std::vector<int> slots_of_rank(static_cast<std::size_t>(place_.ep_size), 1);
    return repeat([&] { transport_.exchange_counts(*lane_, send, recv, slots_of_rank); });
  }

  template <typename Exchange>
  std::vector<double> repeat(const Exchange& exchange) {
    std::vector<double> seconds;
    for (int i = 0; i < kWarmup + kRepeats; ++i) {
      timeline_->start(*lane_);
      ranks_.align();
      timeline_->mark(*lane_, 0);
      exchange();
      timeline_->mark(*lane_, 1);
      lane_->synchronize();
      if (i >= kWarmup) seconds.push_back(timeline_->at(1) - timeline_->at(0));
    }
    return seconds;
  }

  Backend& backend_;
  Transport& transport_;
  const ExchangePlace& place_;
  const RanksTogether& ranks_;
  std::unique_ptr<Lane> lane_;
  std::unique_ptr<Timeline> timeline_;
  Buffer send_, recv_;
};

}  // namespace

ExchangeTimes probe_exchange(Backend& backend, Transport& transport, const ExchangePlace& place,
                             double budget_s, const RanksTogether& ranks) {
  ranks.enter_phase("measuring bare exchanges");
  if (place.ep_size < 2) return {};
  return ExchangeProbe(backend, transport, place, ranks).run(budget_s);
}

}  // namespace epsweep
