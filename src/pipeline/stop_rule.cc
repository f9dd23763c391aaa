#include "pipeline/stop_rule.h"

#include <algorithm>

#include "base/statistics.h"

namespace epsweep {

std::optional<double> relative_precision(std::span<const double> samples) {
  const std::optional<Interval> interval = median_interval(samples);
  if (!interval.has_value()) return std::nullopt;
  const double median = nearest_rank(samples, 0.5);
  if (median <= 0) return std::nullopt;
  return (interval->high - interval->low) / 2 / median;
}

int next_batch(const IterationPlan& plan, int num_done) {
  if (num_done < plan.fewest) return plan.fewest - num_done;
  const int left = plan.target.has_value() ? plan.target->most - num_done : 0;
  return std::min(left, std::max(10, num_done / 4));
}

std::optional<StopReason> stop_reason(const IterationPlan& plan, std::span<const double> slowest_s,
                                      double elapsed_s) {
  const auto num_done = static_cast<int>(slowest_s.size());
  if (num_done < plan.fewest) return std::nullopt;
  if (!plan.target.has_value()) return StopReason::count;
  const std::optional<double> reached = relative_precision(slowest_s);
  if (reached.has_value() && *reached <= plan.target->precision) return StopReason::precision;
  if (elapsed_s >= plan.target->limit_s) return StopReason::time;
  if (num_done >= plan.target->most) return StopReason::most;
  return std::nullopt;
}

}  // namespace epsweep
