// The time of a layer in parts that add up, of one point: what attributions are differences of.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "costs/exchange_fit.h"
#include "costs/ffn_work.h"
#include "costs/roofline.h"
#include "report/summary.h"
#include "report/timing_table.h"

namespace epsweep {

// Microseconds per layer. All but `residual` are of the aligned pass.
enum class LayerPart {
  router,          // median rank
  count_exchange,  // transfer
  permute,         // median rank
  dispatch,        // transfer
  ffn_typical,     // expert_ffn of a rank with the mean rows, like the median rank otherwise
  ffn_rows,        // what the slowest rank takes beyond that because of its rows
  uneven,          // what slowest ranks take beyond that although rows do not explain it, in all
                   // stages of their own: host, clock, device
  combine,         // transfer
  unpermute,       // median rank
  residual,        // chained period - sum of the others
};
inline constexpr std::array<std::string_view, 10> kPartNames = {
    "router",   "count_exchange", "permute", "dispatch",  "ffn_typical",
    "ffn_rows", "uneven",         "combine", "unpermute", "residual"};
inline constexpr std::size_t kNumParts = kPartNames.size();

// What the expert FFN of each rank has to do, by routing; and how fast ranks can at best.
struct BreakdownWork {
  std::vector<std::vector<FfnWork>> ffn;          // [routings][ep_size]
  std::vector<std::vector<FfnWork>> uniform_ffn;  // [draws][ep_size]: of uniform routing
  // Of the median rank: a slow one must not excuse itself. Absent where nobody measured.
  std::optional<RankRates> rates;
  std::optional<ExchangeLine> exchange;
  // Of the rank that has most in a routing, mean over routings: rows to or from others by letter A,
  // the copies of them that are sent, and bytes of one.
  double critical_rows = 0, critical_copies = 0;
  double mean_rows = 0;  // the same of the mean rank, by letter A
  std::int64_t row_bytes = 0;
  int layers = 1;
};

// What the parts that depend on rows and bytes are made of, microseconds per layer.
struct BreakdownModel {
  // Time of the mean rank's weights at the measured bandwidth, and of its operations at the
  // measured rate. The roofline is the larger.
  std::optional<double> weight_us, compute_us;
  // What uniform routing would cost the slowest rank beyond the mean; never above ffn_rows.
  std::optional<double> skew_floor_us;
  // Of one exchange: alpha, and the time of one row by letter A at the measured bandwidth.
  std::optional<double> alpha_us, row_us;
  double mean_rows = 0;  // to or from others, by letter A
  double rows = 0;       // the same of the rank with most
  double dedup = 1;      // copies really sent / rows by letter A
};

struct Breakdown {
  double period_us = 0;  // p50, chained
  std::array<double, kNumParts> parts_us{};
  BreakdownModel model;

  double& at(LayerPart part) { return parts_us[static_cast<std::size_t>(part)]; }
  double at(LayerPart part) const { return parts_us[static_cast<std::size_t>(part)]; }
};

// Each part is taken from every (iteration, layer), summed over layers / layers, and its p50 over
// iterations is shown; what medians do not add up to is in `residual`. Of several groups the one
// whose part is largest counts, as in a report of slowest ranks.
//
// What rows explain: with r the roofline time of each rank's work at the same rates for all, the
// slowest rank may take slope * (r of it - mean r) longer than the mean. slope is the median of
// the slopes between ranks' median times (Theil's incomplete method, 1950: sorted by r, each with
// the one half of them further), at least 1, as nobody is faster than a roof, and at most the
// median of time / r, as if nothing but rows took time. Without rates r is the number of rows, and
// the slope has no lower bound.
//
// `summary` is of the same table. ep_rank_of_row: of the table's rows. Absent where the layers were
// not timed one after the other too.
std::optional<Breakdown> break_down(const TimingTable& table, const TableRows& rows,
                                    const std::vector<int>& ep_rank_of_row,
                                    const PointSummary& summary, const BreakdownWork& work);

}  // namespace epsweep
