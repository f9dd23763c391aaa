#include "ceilings/gemm_probe.h"

#include <algorithm>
#include <array>
#include <memory>

#include <fmt/format.h>

#include "base/error.h"
#include "base/host_probe.h"
#include "base/payload_stream.h"
#include "device/grouped_gemm.h"

namespace epsweep {
namespace {

constexpr std::array<std::int64_t, 6> kSizes = {256, 512, 1024, 2048, 4096, 8192};
constexpr int kRepeats = 3;
constexpr std::int64_t kMemoryShare = 8;
// From one size to the next, in time.
constexpr std::int64_t kGrowth = 8;
constexpr float kUnit = 0x1.0p-10F;

PayloadStream values(std::uint64_t which) {
  return {.words = RandomStream(1, Stream::check, which), .unit = kUnit};
}

// One kernel at one size, ready to run.
class SquareGemm {
 public:
  // Throws RunError where memory or the library does not allow it.
  SquareGemm(Backend& backend, const GroupedGemmEntry& entry, const GemmShape& shape)
      : rows_{shape.n}, lane_(backend.make_lane()), timeline_(backend.make_timeline(2)) {
    const DType dtype = row_dtype(shape.dtype);
    const std::int64_t count = shape.n * shape.n;
    gemm_ = entry.make(shape, backend.describe().num_threads);
    gemm_->prepare([](int) { return values(0); });
    gemm_->warm(rows_);
    x_ = backend.make_buffer(count * bytes_of(dtype));
    y_ = backend.make_buffer(count * bytes_of(dtype));
    backend.fill(x_, values(1), 0, count, dtype);
    run();  // whatever happens in the first call only
  }

  // Seconds.
  double run() {
    timeline_->start(*lane_);
    timeline_->mark(*lane_, 0);
    gemm_->run(*lane_, x_, y_, rows_);
    timeline_->mark(*lane_, 1);
    lane_->synchronize();
    return timeline_->at(1) - timeline_->at(0);
  }

 private:
  std::array<std::int64_t, 1> rows_;
  std::unique_ptr<Lane> lane_;
  std::unique_ptr<Timeline> timeline_;
  std::unique_ptr<GroupedGemm> gemm_;
  Buffer x_, y_;
};

std::unique_ptr<SquareGemm> make_gemm(Backend& backend, const GroupedGemmEntry& entry,
                                      const GemmShape& shape) {
  const std::int64_t bytes =
      shape.n * shape.n * (bytes_of(shape.dtype) + 2 * bytes_of(row_dtype(shape.dtype)));
  if (bytes > backend.describe().memory_bytes / kMemoryShare) return nullptr;
  try {
    if (entry.refuses != nullptr && entry.refuses(shape)) return nullptr;
    return std::make_unique<SquareGemm>(backend, entry, shape);
  } catch (const Error&) {
    return nullptr;
  }
}

void keep_better(const GemmRate& rate, std::optional<GemmRate>& best) {
  if (!best || rate.flop_per_s > best->flop_per_s) best = rate;
}

}  // namespace

std::optional<GemmRate> probe_gemm(Backend& backend, const std::vector<std::string>& kernels,
                                   DType dtype, double budget_s, const RanksTogether& ranks) {
  std::optional<GemmRate> best;
  for (const std::string& kernel : kernels) {
    const GroupedGemmEntry& entry = GroupedGemmCatalog::instance().at(kernel);
    ranks.enter_phase(fmt::format("measuring the GEMM rate of {}", kernel));
    for (const std::int64_t size : kSizes) {
      const auto gemm =
          make_gemm(backend, entry, {.num_experts = 1, .n = size, .k = size, .dtype = dtype});
      if (ranks.all_max(gemm == nullptr ? kFailed : 0) == kFailed) break;
      const double begin_s = monotonic_s();
      double best_s = gemm->run();
      for (int i = 1; i < kRepeats; ++i) best_s = std::min(best_s, gemm->run());
      const double flops = 2.0 * static_cast<double>(size) * static_cast<double>(size * size);
      if (best_s > 0)
        keep_better({.flop_per_s = flops / best_s, .kernel = kernel, .size = size}, best);
      // By the host's clock too: what devices say of their own time need not be all of it.
      const double spent_s = std::max(best_s, (monotonic_s() - begin_s) / kRepeats);
      const std::int64_t slowest_ns = ranks.all_max(nanoseconds(spent_s));
      if (slowest_ns * kGrowth * (kRepeats + 1) > nanoseconds(budget_s)) break;
    }
  }
  return best;
}

}  // namespace epsweep
