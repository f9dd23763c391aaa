#include "app/plan_limits.h"

#include <algorithm>

#include <fmt/format.h>

#include "plan/load_search.h"

namespace epsweep {
namespace {

// With the first of them admitted and the second one refused.
int most_between(const Concurrency& low, const Concurrency& high, double resolution) {
  if (low.mode != high.mode || low.mode == ConcurrencyMode::listed || low.tokens == 0) return 0;
  LoadSearch search(resolution);
  search.end(low.tokens, LoadEnd::admitted);
  search.end(high.tokens, LoadEnd::device_memory);
  return search.most_left();
}

std::string objective_text(const Limits& limits) {
  const auto objective_s = limits.objective_s();
  if (!objective_s) return "no latency objective";
  return fmt::format("a TPOT above {:.4g} ms ({:.4g} tokens/s/user), so a layer {} above {:.1f} us",
                     *objective_s * 1e3, 1 / *objective_s, to_string(limits.percentile),
                     *layer_objective_s(limits) * 1e6);
}

}  // namespace

int most_added_loads(const SweepSpec& spec) {
  int most = 0;
  for (std::size_t i = 1; spec.limits && i < spec.concurrency.size(); ++i) {
    most = std::max(
        most, most_between(spec.concurrency[i - 1], spec.concurrency[i], spec.limits->resolution));
  }
  return most;
}

std::string limits_text(const SweepSpec& spec) {
  if (!spec.limits) return "";
  const Limits& limits = *spec.limits;
  return fmt::format(
      "limits: TPOT = {} layers x (layer {} + {} us). A series ends at its first load that meets "
      "kv_memory, device_memory or latency_objective: {}, measured twice. A run then bisects "
      "between that load and the last admitted one until they are within {:.4g} %: up to {} loads "
      "more in a series than shown here.\n",
      limits.layers, to_string(limits.percentile), limits.other_layer_us, objective_text(limits),
      limits.resolution * 100, most_added_loads(spec));
}

}  // namespace epsweep
