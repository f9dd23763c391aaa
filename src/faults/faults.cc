#include "faults/faults.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace epsweep {
namespace {

bool contains(const std::vector<Fault>& faults, FaultKind kind) {
  return std::ranges::any_of(faults, [kind](const Fault& fault) { return fault.kind == kind; });
}

// Forwards everything; the faulty kernels change one thing each.
class WrappedGemm : public GroupedGemm {
 public:
  WrappedGemm(std::unique_ptr<GroupedGemm> inner, const GemmShape& shape)
      : inner_(std::move(inner)), shape_(shape) {}

  void prepare(const WeightSource& weights) override { inner_->prepare(weights); }
  void warm(std::span<const std::int64_t> rows) override { inner_->warm(rows); }
  GemmWork run(Lane& lane, const Buffer& x, Buffer& y,
               std::span<const std::int64_t> rows) override {
    return inner_->run(lane, x, y, rows);
  }
  void flush_weights() override { inner_->flush_weights(); }
  std::int64_t weight_bytes() const override { return inner_->weight_bytes(); }

 protected:
  std::unique_ptr<GroupedGemm> inner_;
  GemmShape shape_;
};

class SwappedExperts final : public WrappedGemm {
 public:
  using WrappedGemm::WrappedGemm;
  void prepare(const WeightSource& weights) override {
    EPS_EXPECT(shape_.num_experts >= 2, "swap_experts needs two experts on its rank");
    inner_->prepare([&weights](int expert) { return weights(expert < 2 ? 1 - expert : expert); });
  }
};

std::vector<std::byte> first_bytes(Backend& backend, const Buffer& buffer, std::int64_t bytes) {
  std::vector<std::byte> host(static_cast<std::size_t>(bytes));
  backend.copy_to_host(buffer, host.data(), bytes);
  return host;
}

class SkippedExpert final : public WrappedGemm {
 public:
  SkippedExpert(std::unique_ptr<GroupedGemm> inner, const GemmShape& shape, Backend& backend)
      : WrappedGemm(std::move(inner), shape), backend_(backend) {}
  GemmWork run(Lane& lane, const Buffer& x, Buffer& y,
               std::span<const std::int64_t> rows) override {
    const auto first = std::ranges::find_if(rows, [](std::int64_t count) { return count > 0; });
    if (first == rows.end()) return inner_->run(lane, x, y, rows);
    const std::int64_t bytes = *first * shape_.n * bytes_of(row_dtype(shape_.dtype));
    lane.synchronize();
    const std::vector<std::byte> before = first_bytes(backend_, y, bytes);
    const GemmWork work = inner_->run(lane, x, y, rows);
    lane.synchronize();
    backend_.copy_from_host(before.data(), y, bytes);
    return work;
  }

 private:
  Backend& backend_;
};

// Rows of the receive buffer up to the last that arrives, gaps included.
std::int64_t rows_up_to_the_last(const ExchangeRows& rows) {
  std::int64_t begin = 0, end = 0;
  for (const std::int64_t count : rows.recv) {
    if (count > 0) end = begin + count;
    begin += rows.capacity > 0 ? rows.capacity : count;
  }
  return end;
}

class DroppedRow final : public Transport {
 public:
  DroppedRow(std::unique_ptr<Transport> inner, Backend& backend)
      : inner_(std::move(inner)), backend_(backend) {}

  void exchange_counts(Lane& lane, const Buffer& send, Buffer& recv,
                       std::span<const int> slots_of_rank) override {
    inner_->exchange_counts(lane, send, recv, slots_of_rank);
  }
  void all_to_all_v(Lane& lane, const Buffer& send, Buffer& recv,
                    const ExchangeRows& rows) override {
    const std::int64_t num_rows = rows_up_to_the_last(rows);
    if (num_rows == 0) return inner_->all_to_all_v(lane, send, recv, rows);
    const std::int64_t bytes = num_rows * rows.row_bytes;
    lane.synchronize();
    const std::vector<std::byte> before = first_bytes(backend_, recv, bytes);
    inner_->all_to_all_v(lane, send, recv, rows);
    lane.synchronize();
    std::vector<std::byte> after = first_bytes(backend_, recv, bytes);
    std::copy(before.end() - rows.row_bytes, before.end(), after.end() - rows.row_bytes);
    backend_.copy_from_host(after.data(), recv, bytes);
  }
  void close() override { inner_->close(); }

 private:
  std::unique_ptr<Transport> inner_;
  Backend& backend_;
};

int parse_number(const std::string& text, const std::string& word) {
  int value = 0;
  const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || rest != word.data() + word.size() || value < 0) {
    throw ConfigError(fmt::format("--inject {}: '{}' is not a count", text, word));
  }
  return value;
}

// Within +-`limit`.
double parse_real(const std::string& text, const std::string& word, double limit) {
  double value = 0;
  const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || rest != word.data() + word.size() || !(std::abs(value) <= limit)) {
    throw ConfigError(
        fmt::format("--inject {}: '{}' is not a number up to +-{:g}", text, word, limit));
  }
  return value;
}

// False for a word that is not about a slow_clock.
bool read_clock_word(const std::string& text, const std::string& word, Fault& fault) {
  constexpr double kMaxOffsetMs = 1e6;
  constexpr double kMaxPpm = 200;  // two such clocks part by less than kMaxDriftPpm
  if (fault.kind != FaultKind::slow_clock) return false;
  if (word.starts_with("ep_size=")) {
    throw ConfigError(fmt::format("--inject {}: a clock is slow at every EP size", text));
  }
  if (word.starts_with("offset_ms=")) {
    fault.offset_ms = parse_real(text, word.substr(10), kMaxOffsetMs);
  } else if (word.starts_with("drift_ppm=")) {
    fault.drift_ppm = parse_real(text, word.substr(10), kMaxPpm);
  } else {
    return false;
  }
  return true;
}

}  // namespace

const std::vector<std::string>& fault_names() {
  static const std::vector<std::string> names = {"swap_experts", "skip_expert", "drop_row",
                                                 "check_error",  "plan_seed",   "slow_clock"};
  return names;
}

Fault parse_fault(const std::string& text) {
  std::istringstream words(text);
  std::string kind;
  std::getline(words, kind, ':');
  const auto found = std::ranges::find(fault_names(), kind);
  if (found == fault_names().end()) {
    throw ConfigError(
        fmt::format("--inject {}: '{}' is not one of: {}", text, kind, join(fault_names())));
  }
  Fault fault;
  fault.kind = static_cast<FaultKind>(found - fault_names().begin());
  for (std::string word; std::getline(words, word, ':');) {
    if (read_clock_word(text, word, fault)) continue;
    if (word.starts_with("rank=")) {
      fault.rank = parse_number(text, word.substr(5));
    } else if (word.starts_with("ep_size=")) {
      fault.ep_size = parse_number(text, word.substr(8));
    } else {
      throw ConfigError(
          fmt::format("--inject {}: '{}' is neither rank=N nor ep_size=N", text, word));
    }
  }
  return fault;
}

RankClock clock_with_faults(const std::vector<Fault>& faults, int world_rank) {
  for (const Fault& fault : faults) {
    if (fault.kind != FaultKind::slow_clock || fault.rank != world_rank) continue;
    return {.source = ClockSource::injected,
            .offset_s = -fault.offset_ms * 1e-3,
            .drift_ppm = -fault.drift_ppm,
            .origin_s = monotonic_s()};
  }
  return {};
}

std::unique_ptr<GroupedGemm> with_faults(std::unique_ptr<GroupedGemm> gemm, const GemmShape& shape,
                                         const std::vector<Fault>& faults, Backend& backend) {
  if (contains(faults, FaultKind::swap_experts)) {
    gemm = std::make_unique<SwappedExperts>(std::move(gemm), shape);
  }
  if (contains(faults, FaultKind::skip_expert)) {
    gemm = std::make_unique<SkippedExpert>(std::move(gemm), shape, backend);
  }
  return gemm;
}

std::unique_ptr<Transport> with_faults(std::unique_ptr<Transport> transport,
                                       const std::vector<Fault>& faults, Backend& backend) {
  if (!contains(faults, FaultKind::drop_row)) return transport;
  return std::make_unique<DroppedRow>(std::move(transport), backend);
}

}  // namespace epsweep
