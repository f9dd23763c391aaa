#include "plan/plan_order.h"

#include <numeric>
#include <utility>

#include "base/random.h"

namespace epsweep {

std::vector<std::size_t> shuffled_series(const RepeatShape& shape, std::uint64_t seed, int repeat) {
  std::vector<std::size_t> series(shape.num_outer * shape.num_inner);
  std::iota(series.begin(), series.end(), std::size_t{0});
  // Fisher and Yates, with own random values: standard libraries shuffle differently.
  const RandomStream random(seed, Stream::order, static_cast<std::uint64_t>(repeat));
  for (std::size_t i = series.size(); i > 1; --i) {
    std::swap(series[i - 1], series[random.below(i, i)]);
  }
  std::vector<std::size_t> order;
  for (const std::size_t one : series) {
    const std::size_t outer = one / shape.num_inner, inner = one % shape.num_inner;
    for (std::size_t load = 0; load < shape.num_loads; ++load) {
      order.push_back((outer * shape.num_loads + load) * shape.num_inner + inner);
    }
  }
  return order;
}

}  // namespace epsweep
