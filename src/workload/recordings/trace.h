// Recorded routes: the experts of each token.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "workload/recordings/cut.h"
#include "workload/routing_note.h"

namespace epsweep {

// What a recording must fit.
struct TraceModel {
  int num_experts = 0;
  int top_k = 0;
};

struct RecordedTrace {
  std::map<std::int64_t, std::vector<std::int32_t>> layers;  // layer -> [tokens][top_k]
  std::vector<RoutingNote> notes;
};

// Why these are not the experts of one token; empty if they are, or if all of them are -1, which
// recorders write for padding.
std::string token_problem(const TraceModel& model, std::span<const std::int64_t> ids);

// Puts a trace together token by token, layers in any order.
class TraceBuilder {
 public:
  explicit TraceBuilder(const TraceModel& model) : model_(model) {}

  // `ids` without a token_problem(). Padding is counted and left out.
  void add_token(std::int64_t layer, std::span<const std::int64_t> ids);
  // Tokens of the layer so far, padding included.
  std::int64_t num_seen(std::int64_t layer) const;
  // Cuts every layer and looks for what does not come from real tokens. Throws ConfigError for a
  // trace without tokens and for a cut that does not fit.
  RecordedTrace finish(const std::string& where, const Cut& tokens);

 private:
  TraceModel model_;
  RecordedTrace trace_;
  std::map<std::int64_t, std::int64_t> padding_;  // layer -> tokens left out
};

// JSON lines: {"layer": l, "experts" or "topk_ids": [top_k ids]}, in token order within a layer;
// lines with "meta" or "type": "meta" hold no token. Throws ConfigError naming file and line.
RecordedTrace read_trace_lines(std::string_view text, const std::string& where,
                               const TraceModel& model, const Cut& tokens);

}  // namespace epsweep
