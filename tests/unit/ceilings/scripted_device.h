// A device whose clock stands still but for what its work is said to take.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "ceilings/ranks_together.h"
#include "support/forwarding_backend.h"

namespace epsweep {

struct ScriptedClock {
  double now_s = 100;
};

class ScriptedTimeline final : public Timeline {
 public:
  ScriptedTimeline(ScriptedClock& clock, int num_marks)
      : clock_(clock), marks_(static_cast<std::size_t>(num_marks)) {}
  void mark(Lane&, MarkId id) override { marks_[static_cast<std::size_t>(id)] = clock_.now_s; }
  void wait(Lane&, MarkId) override {}
  double at(MarkId id) const override { return marks_[static_cast<std::size_t>(id)]; }
  double cpu_at(MarkId) const override { return 0; }

 private:
  ScriptedClock& clock_;
  std::vector<double> marks_;
};

// Reads 10 GB/s and copies 8 GB/s in both directions together; the first pass over memory takes
// ten times as long.
class ScriptedProbes final : public Probes {
 public:
  explicit ScriptedProbes(ScriptedClock& clock) : clock_(clock) {}
  std::int64_t stream_bytes() const override { return wanted_bytes; }
  void read(Lane&, const Buffer& from, const BufferPart& part) override {
    EPS_EXPECT(holds(from, part), "read beyond the buffer");
    read_bytes += part.bytes;
    const bool first = read_bytes <= wanted_bytes;
    clock_.now_s += static_cast<double>(part.bytes) / 10e9 * (first ? 10 : 1);
    longest_part_bytes = first ? 0 : std::max(longest_part_bytes, part.bytes);
  }
  void copy(Lane&, Buffer& buffer, const BufferPart& part, std::int64_t to) override {
    EPS_EXPECT(holds(buffer, part) && holds(buffer, {to, part.bytes}), "copy beyond the buffer");
    EPS_EXPECT(part.begin + part.bytes <= to, "overlap");
    clock_.now_s += 2 * static_cast<double>(part.bytes) / 8e9;
  }
  void nothing(Lane&) override {}

  std::int64_t wanted_bytes = std::int64_t{64} << 20;
  std::int64_t read_bytes = 0, longest_part_bytes = 0;

 private:
  ScriptedClock& clock_;
};

class ScriptedDevice final : public ForwardingBackend {
 public:
  BackendInfo describe() const override {
    BackendInfo info = ForwardingBackend::describe();
    info.memory_bytes = memory_bytes;
    info.last_level_cache_bytes = cache_bytes;
    return info;
  }
  std::unique_ptr<Timeline> make_timeline(int num_marks) override {
    return std::make_unique<ScriptedTimeline>(clock, num_marks);
  }
  Buffer make_buffer(std::int64_t bytes) override {
    if (bytes > largest_buffer) throw RunError("no memory");
    return ForwardingBackend::make_buffer(bytes);
  }
  Probes* probes() override { return has_probes ? &stream_probes : nullptr; }

  ScriptedClock clock;
  ScriptedProbes stream_probes{clock};
  bool has_probes = true;
  std::int64_t memory_bytes = std::int64_t{8} << 30, cache_bytes = std::int64_t{32} << 20;
  std::int64_t largest_buffer = std::int64_t{1} << 40;
};

// One rank, or one of several of which another says `other` every time.
struct ScriptedRanks {
  std::optional<std::int64_t> other;
  int num_calls = 0;

  RanksTogether together() {
    return {.all_max =
                [this](std::int64_t own) {
                  ++num_calls;
                  return std::max(own, other.value_or(own));
                },
            .enter_phase = [](const std::string&) {}};
  }
};

}  // namespace epsweep
