// The routing of one layer: which experts each of the C tokens picks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plan/sweep_point.h"
#include "workload/distribution.h"
#include "workload/skew_target.h"

namespace epsweep {

struct Trace {
  std::int64_t num_tokens = 0;
  int top_k = 0;
  int num_experts = 0;
  std::vector<std::int32_t> experts;  // [num_tokens][top_k]

  std::span<const std::int32_t> of_token(std::int64_t token) const {
    return std::span(experts).subspan(static_cast<std::size_t>(token * top_k),
                                      static_cast<std::size_t>(top_k));
  }
};

// Equal keys mean equal traces.
std::string trace_key(const SweepPoint& point);

// What the search found for a layer of a point whose routing asks for max_over_mean: once per
// process and trace. Absent where it does not, or where there are no tokens. Throws ConfigError.
std::optional<SolvedSkew> solved_skew(const SweepPoint& point, int layer);

// The point with the parameter that was found for this layer in place of max_over_mean, so that
// other tokens can be drawn like its own; other points as they are.
SweepPoint point_as_solved(SweepPoint point, int layer);

// The parameter that the search is for.
const std::string& skew_param(const SweepPoint& point);

// What the point's recording says about itself. Throws ConfigError where it cannot be read.
std::vector<RoutingNote> routing_notes(const SweepPoint& point);

// The point's distribution, ready to draw; what draw_trace() asks token by token. Throws
// ConfigError where parameters or a recorded file do not fit.
TokenRouter make_token_router(const SweepPoint& point, int layer);

// Depends on the point's model, routing, token count, seed and step only, so points that differ in
// EP size, placement, kernel or transport get the same trace. Throws ConfigError.
Trace draw_trace(const SweepPoint& point, int layer);

// Tokens [begin, end) of it alone; the first of them is token 0 of the result.
Trace draw_tokens(const SweepPoint& point, int layer, const TokenRange& tokens);
// Why the trace of one layer, tokens_global * top_k * 4 bytes, is not drawn: it takes more than a
// quarter of the memory of the machine that draws it. Absent if it may be.
std::optional<std::string> trace_refusal(const SweepPoint& point, std::int64_t machine_bytes);

// Rows of each expert's input matrix, M_e: how many of the tokens picked it.
std::vector<std::int64_t> rows_per_expert(const Trace& trace);

// Equal for equal routing, whatever EP size it is used at.
std::uint64_t routing_checksum(const Trace& trace);
// Over the traces of all layers of a point.
std::uint64_t routing_checksum(const std::vector<Trace>& layers);

}  // namespace epsweep
