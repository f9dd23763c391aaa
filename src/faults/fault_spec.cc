// Faults as they are written on the command line.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

#include <fmt/format.h>

#include "base/error.h"
#include "base/host_probe.h"
#include "base/text.h"
#include "faults/faults.h"

namespace epsweep {
namespace {

int parse_number(const std::string& text, const std::string& word) {
  int value = 0;
  const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || rest != word.data() + word.size() || value < 0) {
    throw ConfigError(fmt::format("--inject {}: '{}' is not a count", text, word));
  }
  return value;
}

constexpr double kMaxOffsetMs = 1e6;
constexpr double kMaxPpm = 200;  // two such clocks part by less than kMaxDriftPpm

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

Stage parse_stage(const std::string& text, const std::string& word) {
  const auto found = std::ranges::find(kStageNames, word);
  if (found != kStageNames.end()) return static_cast<Stage>(found - kStageNames.begin());
  const std::vector<std::string> names(kStageNames.begin(), kStageNames.end());
  throw ConfigError(fmt::format("--inject {}: '{}' is not one of: {}", text, word, join(names)));
}

DelayPlace parse_place(const std::string& text, const std::string& word) {
  if (word == "before") return DelayPlace::before;
  if (word == "inside") return DelayPlace::inside;
  throw ConfigError(fmt::format("--inject {}: '{}' is neither before nor inside", text, word));
}

// "key=value" of the fault `text`.
void read_parameter(const std::string& text, const std::string& parameter, Fault& fault) {
  const std::size_t equals = parameter.find('=');
  const std::string key = parameter.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : parameter.substr(equals + 1);
  const bool is_delay = fault.kind == FaultKind::delay;
  const bool is_clock = fault.kind == FaultKind::slow_clock;
  if (key == "rank") {
    fault.rank = parse_number(text, value);
  } else if (key == "ep_size" && !is_clock) {  // a clock is slow at every EP size
    fault.ep_size = parse_number(text, value);
  } else if (is_delay && key == "stage") {
    fault.delay.stage = parse_stage(text, value);
  } else if (is_delay && key == "place") {
    fault.delay.place = parse_place(text, value);
  } else if (is_delay && key == "us") {
    fault.delay.us = parse_number(text, value);
  } else if (is_delay && key == "every") {
    fault.delay.every = parse_number(text, value);
  } else if (is_delay && key == "first") {
    fault.delay.first = parse_number(text, value);
  } else if (is_clock && key == "offset_ms") {
    fault.offset_ms = parse_real(text, value, kMaxOffsetMs);
  } else if (is_clock && key == "drift_ppm") {
    fault.drift_ppm = parse_real(text, value, kMaxPpm);
  } else {
    throw ConfigError(fmt::format("--inject {}: '{}' is none of rank=N{}", text, parameter,
                                  is_delay   ? ", ep_size=N, stage=, us=N, place=, every=N, first=N"
                                  : is_clock ? ", offset_ms=, drift_ppm="
                                             : ", ep_size=N"));
  }
}

}  // namespace

const std::vector<std::string>& fault_names() {
  static const std::vector<std::string> names = {
      "swap_experts", "skip_expert", "drop_row", "check_error", "plan_seed", "delay", "slow_clock"};
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
  for (std::string word; std::getline(words, word, ':');) read_parameter(text, word, fault);
  if (fault.kind == FaultKind::delay && (fault.delay.us == 0 || !fault.delay.stage)) {
    throw ConfigError(fmt::format("--inject {}: a delay needs stage=NAME and us=N", text));
  }
  return fault;
}

std::int64_t delay_us(const std::vector<Fault>& faults, std::int64_t iteration, Stage stage,
                      DelayPlace place) {
  std::int64_t us = 0;
  for (const Fault& fault : faults) {
    const Delay& delay = fault.delay;
    if (fault.kind != FaultKind::delay || delay.stage != stage || delay.place != place) continue;
    if (delay.applies(iteration)) us += delay.us;
  }
  return us;
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

}  // namespace epsweep
