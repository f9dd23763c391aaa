#include "ceilings/stream_probe.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/host_probe.h"
#include "base/payload_stream.h"
#include "base/statistics.h"

namespace epsweep {
namespace {

constexpr int kPasses = 2;  // after one that does not count
// A pass is timed in parts of about this long and the best part counts: on a busy machine longer
// ones are interrupted. A device that is faster is timed in whole passes.
constexpr double kPartSeconds = 4e-3;
constexpr std::int64_t kMostParts = 64;
// Values are made for so much, and copied from there on.
constexpr std::int64_t kFillBytes = std::int64_t{16} << 20;
constexpr double kFillSeconds = 1;
constexpr int kLaunches = 51;
constexpr std::int64_t kMemoryShare = 8;
// Parts of passes and halves of copies consist of whole lines.
constexpr std::int64_t kGranule = 2 * kMostParts * 4096;

class StreamProbe {
 public:
  StreamProbe(Backend& backend, const RanksTogether& ranks)
      : probes_(backend.probes()),
        ranks_(ranks),
        lane_(backend.make_lane()),
        timeline_(backend.make_timeline(2)) {
    const BackendInfo info = backend.describe();
    rates_.last_level_cache_bytes = info.last_level_cache_bytes;
    if (probes_ == nullptr) return;
    const std::int64_t bytes =
        std::min(probes_->stream_bytes(), info.memory_bytes / kMemoryShare) / kGranule * kGranule;
    if (bytes <= 0) return;
    try {
      buffer_ = backend.make_buffer(bytes);
    } catch (const RunError&) {
      return;  // no rate
    }
    rates_.streamed_bytes = fill(backend, bytes) / kGranule * kGranule;
  }

  StreamRates run() {
    const std::int64_t bytes = rates_.streamed_bytes;
    rates_.read_bytes_per_s =
        best_rate(bytes, 1, [&](const BufferPart& part) { probes_->read(*lane_, *buffer_, part); });
    rates_.copy_bytes_per_s = best_rate(bytes / 2, 2, [&](const BufferPart& part) {
      probes_->copy(*lane_, *buffer_, part, bytes / 2 + part.begin);
    });
    ranks_.align();
    if (probes_ != nullptr) rates_.launch_latency_s = launch_latency_s();
    return rates_;
  }

 private:
  // The bytes that hold values after it. A system may take seconds to hand out a gigabyte that
  // nobody had before: what it has not by then is left out.
  std::int64_t fill(Backend& backend, std::int64_t bytes) {
    const double begin_s = monotonic_s();
    std::int64_t filled = std::min(bytes, kFillBytes);
    backend.fill(*buffer_, {.words = RandomStream(1, Stream::check), .unit = 1.0F}, 0, filled / 2,
                 DType::bf16);
    while (filled < bytes && monotonic_s() - begin_s < kFillSeconds) {
      const std::int64_t next = std::min(bytes - filled, std::min(filled, kFillBytes));
      probes_->copy(*lane_, *buffer_, {0, next}, filled);
      lane_->synchronize();
      filled += next;
    }
    return filled;
  }

  // Of streams over [0, bytes), `times_moved` bytes for each of them. A rank without memory waits
  // for the others all the same.
  template <typename Move>
  std::optional<double> best_rate(std::int64_t bytes, int times_moved, const Move& move) {
    std::optional<double> best;
    std::int64_t part_bytes = bytes;
    for (int pass = 0; pass <= kPasses; ++pass) {
      ranks_.align();
      if (!buffer_) continue;
      double pass_s = 0;
      for (std::int64_t begin = 0; begin < bytes; begin += part_bytes) {
        const double seconds = timed([&] { move({begin, part_bytes}); });
        pass_s += seconds;
        if (pass == 0 || seconds <= 0) continue;
        const double moved = static_cast<double>(part_bytes) * times_moved;
        best = std::max(best.value_or(0), moved / seconds);
      }
      if (pass == 0) part_bytes = bytes / parts_of(pass_s);
    }
    return best;
  }

  // A power of two, so that parts are equal.
  static std::int64_t parts_of(double pass_s) {
    std::int64_t parts = 1;
    while (2 * parts <= kMostParts && static_cast<double>(2 * parts) * kPartSeconds <= pass_s) {
      parts *= 2;
    }
    return parts;
  }

  template <typename Work>
  double timed(const Work& work) {
    timeline_->start(*lane_);
    timeline_->mark(*lane_, 0);
    work();
    timeline_->mark(*lane_, 1);
    lane_->synchronize();
    return timeline_->at(1) - timeline_->at(0);
  }

  double launch_latency_s() {
    std::vector<double> seconds;
    for (int i = 0; i < kLaunches; ++i) {
      const double begin_s = monotonic_s();
      probes_->nothing(*lane_);
      lane_->synchronize();
      seconds.push_back(monotonic_s() - begin_s);
    }
    return nearest_rank(seconds, 0.5);
  }

  Probes* probes_;
  const RanksTogether& ranks_;
  std::unique_ptr<Lane> lane_;
  std::unique_ptr<Timeline> timeline_;
  std::optional<Buffer> buffer_;
  StreamRates rates_;
};

}  // namespace

StreamRates probe_streams(Backend& backend, const RanksTogether& ranks) {
  ranks.enter_phase("measuring memory bandwidth");
  return StreamProbe(backend, ranks).run();
}

}  // namespace epsweep
