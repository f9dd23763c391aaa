#include "workload/recordings/trace.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"

namespace epsweep {
namespace {

// Real tokens do not agree on all their experts that often in a row: engines warm up and measure
// their memory with thousands of equal tokens.
constexpr std::int64_t kSuspiciousRun = 1000;
constexpr std::size_t kMaxListed = 4;

struct Run {
  std::int64_t begin = 0, end = 0;  // tokens, from the start of the recording
  std::int64_t size() const { return end - begin; }
};

std::span<const std::int32_t> token_ids(const std::vector<std::int32_t>& ids, int top_k,
                                        std::int64_t token) {
  const auto width = static_cast<std::size_t>(top_k);
  return std::span(ids).subspan(static_cast<std::size_t>(token) * width, width);
}

std::vector<Run> suspicious_runs(const std::vector<std::int32_t>& ids, int top_k,
                                 std::int64_t first_token) {
  const std::int64_t num_tokens = static_cast<std::int64_t>(ids.size()) / top_k;
  std::vector<Run> runs;
  for (std::int64_t begin = 0, end = 0; begin < num_tokens; begin = end) {
    while (end < num_tokens &&
           std::ranges::equal(token_ids(ids, top_k, begin), token_ids(ids, top_k, end))) {
      ++end;
    }
    if (end - begin >= kSuspiciousRun) runs.push_back({begin + first_token, end + first_token});
  }
  return runs;
}

// The longest stretch between the runs of tokens [begin, end).
Run longest_rest(const std::vector<Run>& runs, Run all) {
  Run best{all.begin, all.begin};
  std::int64_t begin = all.begin;
  for (std::size_t i = 0; i <= runs.size(); ++i) {
    const std::int64_t end = i < runs.size() ? runs[i].begin : all.end;
    if (end - begin > best.size()) best = {begin, end};
    if (i < runs.size()) begin = runs[i].end;
  }
  return best;
}

RoutingNote run_warning(std::int64_t layer, const std::vector<Run>& runs, Run all,
                        std::span<const std::int32_t> first_ids) {
  std::int64_t repeated = 0;
  std::vector<std::string> listed;
  for (const Run& run : runs) {
    repeated += run.size();
    if (listed.size() < kMaxListed) {
      listed.push_back(fmt::format("{}..{}", run.begin, run.end - 1));
    }
  }
  if (runs.size() > kMaxListed) listed.push_back("...");
  const Run rest = longest_rest(runs, all);
  const std::string advice =
      rest.size() == 0
          ? "no other token is there"
          : fmt::format("skip_tokens: {} and max_tokens: {} take the longest part without them",
                        rest.begin, rest.size());
  return {RoutingNote::Kind::warning,
          fmt::format("layer {}: {} of {} tokens repeat the experts of the token before them, "
                      "{} or more in a row, like the dummies of a warm-up: tokens {} (the first "
                      "with experts {}); {}",
                      layer, repeated, all.size(), kSuspiciousRun, fmt::join(listed, ", "),
                      fmt::join(first_ids, ","), advice)};
}

}  // namespace

std::string token_problem(const TraceModel& model, std::span<const std::int64_t> ids) {
  if (ids.size() != static_cast<std::size_t>(model.top_k)) {
    return fmt::format("{} experts in [{}], the model's top_k is {}", ids.size(),
                       fmt::join(ids.first(std::min<std::size_t>(ids.size(), 32)), ","),
                       model.top_k);
  }
  if (std::ranges::all_of(ids, [](std::int64_t id) { return id == -1; })) return "";
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] == -1) {
      return fmt::format("expert -1 beside others in [{}]: padding has -1 in every place",
                         fmt::join(ids, ","));
    }
    if (ids[i] < 0 || ids[i] >= model.num_experts) {
      return fmt::format(
          "expert {} is outside 0..{}, the model has {} experts (slots of a "
          "placement must be turned into experts before)",
          ids[i], model.num_experts - 1, model.num_experts);
    }
    if (std::ranges::find(ids.first(i), ids[i]) != ids.begin() + static_cast<std::ptrdiff_t>(i)) {
      return fmt::format("expert {} appears twice in [{}]", ids[i], fmt::join(ids, ","));
    }
  }
  return "";
}

void TraceBuilder::add_token(std::int64_t layer, std::span<const std::int64_t> ids) {
  std::vector<std::int32_t>& experts = trace_.layers[layer];
  if (ids.front() == -1) {
    ++padding_[layer];
    return;
  }
  for (const std::int64_t id : ids) experts.push_back(static_cast<std::int32_t>(id));
}

std::int64_t TraceBuilder::num_seen(std::int64_t layer) const {
  const auto kept = trace_.layers.find(layer);
  if (kept == trace_.layers.end()) return 0;
  const auto padding = padding_.find(layer);
  return static_cast<std::int64_t>(kept->second.size()) / model_.top_k +
         (padding == padding_.end() ? 0 : padding->second);
}

RecordedTrace TraceBuilder::finish(const std::string& where, const Cut& tokens) {
  std::int64_t dropped = 0;
  for (const auto& [layer, count] : padding_) dropped += count;
  if (dropped > 0) {
    trace_.notes.push_back({RoutingNote::Kind::note,
                            fmt::format("{} padding tokens (experts -1) of {} layers left out",
                                        dropped, padding_.size())});
  }
  std::erase_if(trace_.layers, [](const auto& layer) { return layer.second.empty(); });
  if (trace_.layers.empty()) throw ConfigError(where + ": the trace holds no token");
  std::int64_t least = INT64_MAX, most = 0;
  for (auto& [layer, ids] : trace_.layers) {
    const std::int64_t recorded = static_cast<std::int64_t>(ids.size()) / model_.top_k;
    least = std::min(least, recorded);
    most = std::max(most, recorded);
    const CutRange range =
        cut_range(tokens, recorded, fmt::format("{}: layer {}", where, layer), "tokens");
    ids.erase(ids.begin() + range.end * model_.top_k, ids.end());
    ids.erase(ids.begin(), ids.begin() + range.begin * model_.top_k);
    const std::vector<Run> runs = suspicious_runs(ids, model_.top_k, range.begin);
    if (runs.empty()) continue;
    const auto first_ids = token_ids(ids, model_.top_k, runs.front().begin - range.begin);
    trace_.notes.push_back(run_warning(layer, runs, {range.begin, range.end}, first_ids));
  }
  if (least != most) {
    trace_.notes.push_back(
        {RoutingNote::Kind::note,
         fmt::format("recorded layers hold different numbers of tokens, {} to {}", least, most)});
  }
  return std::move(trace_);
}

}  // namespace epsweep
