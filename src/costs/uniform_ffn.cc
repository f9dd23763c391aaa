#include "costs/uniform_ffn.h"

#include <algorithm>

#include "workload/trace.h"

namespace epsweep {
namespace {

constexpr std::int64_t kTokens = 65'536, kMostDraws = 8;
// Steps that no request stream comes to.
constexpr std::int64_t kFirstStep = std::int64_t{1} << 40;

}  // namespace

std::vector<FfnWork> ffn_work_of_ranks(const SweepPoint& point, const Placement& placement,
                                       const std::vector<std::int64_t>& rows_per_slot) {
  std::vector<FfnWork> ranks;
  for (std::size_t rank = 0; rank + 1 < placement.first_slot_of_rank.size(); ++rank) {
    ranks.push_back(ffn_work(point.model, point.dtype,
                             {rows_per_slot.begin() + placement.first_slot_of_rank[rank],
                              rows_per_slot.begin() + placement.first_slot_of_rank[rank + 1]}));
  }
  return ranks;
}

std::vector<std::vector<FfnWork>> uniform_ffn(const SweepPoint& point, const Placement& placement) {
  const std::int64_t tokens = point.tokens_global();
  if (tokens == 0) return {};
  SweepPoint twin = point;
  twin.routing = {.distribution = "uniform", .params = {}, .file = {}, .file_checksum = {}};
  std::vector<std::vector<FfnWork>> draws;
  const std::int64_t num_draws = std::clamp(kTokens / tokens, std::int64_t{1}, kMostDraws);
  for (std::int64_t draw = 0; draw < num_draws; ++draw) {
    twin.step = kFirstStep + draw;
    draws.push_back(
        ffn_work_of_ranks(point, placement, rows_per_slot(placement, draw_trace(twin, 0))));
  }
  return draws;
}

}  // namespace epsweep
