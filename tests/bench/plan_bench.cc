// How long the parts of a plan take at its largest: plan_bench [num_tokens [ep_size [slots]]].
#include <chrono>
#include <cstdlib>
#include <string>

#include <fmt/format.h>

#include "costs/expected_copies.h"
#include "costs/point_workload.h"
#include "workload/trace.h"

namespace epsweep {
namespace {

SweepPoint bench_point(const std::string& distribution, std::int64_t num_tokens, int ep_size,
                       int num_slots) {
  SweepPoint point;
  point.model.name = "bench";
  point.model.hidden_dim = point.model.expert_io_dim = 7168;
  point.model.ffn_dim = 2048;
  point.model.num_experts = 256;
  point.model.top_k = 8;
  point.model.router = {.num_groups = 8, .topk_groups = 4, .selection_bias = true};
  point.ep_size = ep_size;
  point.concurrency.tokens = num_tokens;
  point.routing.distribution = distribution;
  for (const ParamSpec& spec : DistributionCatalog::instance().at(distribution).params) {
    point.routing.params.push_back({spec.name, spec.default_value});
  }
  point.placement = num_slots > 256 ? "eplb" : "contiguous";
  point.redundant_slots = num_slots - 256;
  point.topology = {.ranks_per_host = 4, .domain_size = 64};
  return point;
}

class Lap {
 public:
  // Seconds since the last call, or since it was made.
  double next() {
    const auto now = std::chrono::steady_clock::now();
    const std::chrono::duration<double> passed = now - last_;
    last_ = now;
    return passed.count();
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

void measure(const SweepPoint& point) {
  Lap lap, total;
  const Trace trace = draw_trace(point, 0);
  const double draw_s = lap.next();
  const std::vector<std::int64_t> rows = rows_per_expert(trace);
  const Placement placement = place_experts(point, 0, rows);
  const double place_s = lap.next();
  const auto places = places_from_topology(point);
  PointWorkloadSum sum(point, places);
  sum.add_layer(trace, placement);
  const PointWorkload work = sum.finish();
  const double count_s = lap.next();
  SampleCache samples;
  ExpectedCopiesSum expected(point, places->group, samples);
  expected.add_layer(0, placement);
  const double expect_s = lap.next();
  const double d_counted = copies_per_token(work.traffic, point.tokens_global())->d;
  fmt::print(
      "{:<18} draw {:.3f} s, place {:.3f}, count {:.3f}, expect {:.3f}, all {:.3f}; D {:.3f} "
      "expected {:.3f}\n",
      point.routing.distribution, draw_s, place_s, count_s, expect_s, total.next(), d_counted,
      expected.finish()->per_token.d);
}

}  // namespace
}  // namespace epsweep

int main(int argc, char** argv) {
  const auto argument = [&](int at, int otherwise) {
    return argc > at ? std::atoi(argv[at]) : otherwise;
  };
  const int num_tokens = argument(1, 1 << 20), ep_size = argument(2, 1024);
  const int num_slots = argument(3, 1024);
  for (const char* distribution : {"uniform", "lognormal_blocks", "zipf", "group_limited"}) {
    epsweep::measure(epsweep::bench_point(distribution, num_tokens, ep_size, num_slots));
  }
}
