#include "faults/faults.h"

#include <algorithm>

#include "base/error.h"

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
  void align(Lane& lane) override { inner_->align(lane); }
  void begin_layer(int routing) override { inner_->begin_layer(routing); }
  void end_rehearsal() override { inner_->end_rehearsal(); }
  void close() override { inner_->close(); }

 private:
  std::unique_ptr<Transport> inner_;
  Backend& backend_;
};

}  // namespace

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
