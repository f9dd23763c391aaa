#include "pipeline/local_copy.h"

#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/local_copy.h"

namespace epsweep {
namespace {

class LocalCopy final : public Transport {
 public:
  LocalCopy(std::unique_ptr<Transport> real, Backend& backend)
      : real_(std::move(real)), backend_(backend) {}

  void begin_layer(int routing) override {
    real_->begin_layer(routing);
    const auto at = static_cast<std::size_t>(routing);
    if (rehearsing_ == Rehearsing::yes) {
      if (brought_.size() <= at) brought_.resize(at + 1);
      brought_[at].clear();
    }
    EPS_EXPECT(at < brought_.size(), fmt::format("routing {} was not rehearsed", routing));
    layer_ = &brought_[at];
    next_ = 0;
  }

  void end_rehearsal() override {
    real_->end_rehearsal();
    rehearsing_ = Rehearsing::no;
    layer_ = nullptr;
  }

  void exchange_counts(Lane& lane, const Buffer& send, Buffer& recv,
                       std::span<const int> slots_of_rank) override {
    if (rehearsing_ == Rehearsing::no) {
      bring(lane, recv, recv.bytes());
      return lane.synchronize();
    }
    real_->exchange_counts(lane, send, recv, slots_of_rank);
    keep(lane, recv, recv.bytes());
  }

  // Received rows lie without gaps.
  void all_to_all_v(Lane& lane, const Buffer& send, Buffer& recv,
                    const ExchangeRows& rows) override {
    EPS_EXPECT(rows.capacity == 0, "a local copy is of exact row counts");
    const std::int64_t bytes =
        std::accumulate(rows.recv.begin(), rows.recv.end(), std::int64_t{0}) * rows.row_bytes;
    if (rehearsing_ == Rehearsing::no) return bring(lane, recv, bytes);
    real_->all_to_all_v(lane, send, recv, rows);
    keep(lane, recv, bytes);
  }

  void align(Lane& lane) override { real_->align(lane); }
  void close() override { real_->close(); }

 private:
  enum class Rehearsing { yes, no };

  void keep(Lane& lane, const Buffer& received, std::int64_t bytes) {
    EPS_EXPECT(layer_ != nullptr, "an exchange outside of a layer");
    layer_->push_back(backend_.make_buffer(bytes));
    backend_.enqueue_copy(lane, received, layer_->back(), bytes);
  }

  void bring(Lane& lane, Buffer& recv, std::int64_t bytes) {
    EPS_EXPECT(layer_ != nullptr && next_ < layer_->size(),
               "transport local_copy: an exchange that was not rehearsed");
    const Buffer& kept = (*layer_)[next_++];
    EPS_EXPECT(kept.bytes() == bytes,
               fmt::format("transport local_copy: {} bytes were rehearsed, {} are asked for",
                           kept.bytes(), bytes));
    backend_.enqueue_copy(lane, kept, recv, bytes);
  }

  std::unique_ptr<Transport> real_;
  Backend& backend_;
  Rehearsing rehearsing_ = Rehearsing::yes;
  std::vector<std::vector<Buffer>> brought_;  // [routings][exchanges of a layer]
  std::vector<Buffer>* layer_ = nullptr;      // the one at hand
  std::size_t next_ = 0;
};

[[maybe_unused]] const bool registered = TransportCatalog::instance().add(
    {.name = std::string(kLocalCopy),
     .backend = kAnyBackend,
     .summary = "a counterfactual: while timed, the rows that the check's exchange brought are "
                "copied inside the rank that received them, and nothing travels",
     .decorate = make_local_copy});

}  // namespace

std::unique_ptr<Transport> make_local_copy(std::unique_ptr<Transport> real, Backend& backend) {
  return std::make_unique<LocalCopy>(std::move(real), backend);
}

const TransportEntry& real_transport(const std::string& name, const std::string& backend) {
  const TransportCatalog& catalog = TransportCatalog::instance();
  const TransportEntry& own = catalog.at(name);
  if (own.decorate == nullptr) return own;
  const TransportEntry& usual =
      catalog.at(BackendCatalog::instance().at(backend).default_transport);
  const auto can = [](const TransportEntry& entry) {
    return entry.refuses == nullptr || !entry.refuses();
  };
  if (can(usual)) return usual;
  for (const std::string& other_name : catalog.names()) {
    const TransportEntry& other = catalog.at(other_name);
    if (other.backend == backend && other.capacity == Capacity::exact && can(other)) return other;
  }
  return usual;
}

}  // namespace epsweep
