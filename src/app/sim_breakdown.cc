#include "app/sim_breakdown.h"

#include "report/breakdown_json.h"
#include "report/point_record.h"
#include "sim/declared_times.h"

namespace epsweep {
namespace {

// Of the rows that leave their rank: how many leave their domain.
double share_between_domains(const Traffic& traffic) {
  const std::int64_t remote = traffic.a_copies - traffic.a_self_copies;
  if (!traffic.domains || remote == 0) return 0;
  return 1 - static_cast<double>(traffic.domains->a_intra_copies) / static_cast<double>(remote);
}

}  // namespace

std::optional<Breakdown> break_down_simulated(const SweepPoint& point, const GroupLayout& layout,
                                              CostsFrom costs_from, const PointWorkload& workload,
                                              const GatheredTimes& times,
                                              const PointSummary& summary,
                                              std::vector<std::vector<FfnWork>> uniform_ffn) {
  const SimCosts costs = point.sim != nullptr ? *point.sim : SimCosts{};
  const double share = share_between_domains(workload.traffic);
  const LinkCosts& link = share > 0 ? costs.inter : costs.intra;
  const FfnRates rates = ffn_rates(point, costs);
  BreakdownWork work = breakdown_work(point, workload, std::nullopt, std::move(uniform_ffn));
  const auto is_declared = [&costs](Stage stage) {
    return costs.stage_us[static_cast<std::size_t>(stage)].has_value();
  };
  const bool declared = costs_from == CostsFrom::declaration;
  if (declared && !is_declared(Stage::expert_ffn)) {
    work.rates =
        RankRates{.flop_per_s = rates.flop_per_s, .read_bytes_per_s = rates.weight_bytes_per_s};
  }
  if (declared && !is_declared(Stage::dispatch) && !is_declared(Stage::combine)) {
    work.exchange =
        ExchangeLine{.alpha_s = link.alpha_us * 1e-6, .beta_bytes_per_s = link.bytes_per_s};
  }
  if (share > 0) {
    work.mean_rows *= share;
    work.critical_rows *= share;
    work.critical_copies *= share;
  }
  return break_down(times.stages, times.rows, ep_ranks_of_rows(layout), summary, work);
}

}  // namespace epsweep
