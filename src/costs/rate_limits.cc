#include "costs/rate_limits.h"

#include <fmt/format.h>

namespace epsweep {

std::optional<RateClaim> worst_impossible(const std::vector<RateClaim>& claims) {
  std::optional<RateClaim> worst;
  for (const RateClaim& claim : claims) {
    if (!claim.impossible()) continue;
    if (!worst || claim.rate * worst->limit > worst->rate * claim.limit) worst = claim;
  }
  return worst;
}

std::string impossible_text(const RateClaim& claim) {
  const auto in_units = [&claim](double rate) {
    return fmt::format("{:.4g} G{}/s", rate / 1e9, claim.unit);
  };
  std::string text = fmt::format("{} {}, above the {} of {}", claim.what, in_units(claim.rate),
                                 in_units(claim.limit), claim.limit_name);
  if (claim.source == LimitSource::measured) {
    text += fmt::format(" by more than the {:.0f} % that two measurements may differ by",
                        kMeasuredAllowance * 100);
  }
  return text;
}

std::string impossible_formula() {
  return fmt::format(
      "a rank's expert_ffn, at its own p50, computes or reads weights more than {:.0f} % faster "
      "than "
      "all ranks on its device (for CPUs: its host) together did when ceilings were measured, "
      "twice "
      "if need be, or at all faster than the peaks that the experiment's hardware declares; or "
      "dispatch or combine send faster than its links. Weight bytes count only with weight_cache "
      "flush, and against a measured ceiling only where more than twice the last cache was "
      "streamed",
      kMeasuredAllowance * 100);
}

}  // namespace epsweep
