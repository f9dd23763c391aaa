// The ceilings of a run: measured before the first point that needs them, and kept.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/json.h"
#include "ceilings/exchange_probe.h"
#include "ceilings/gemm_probe.h"
#include "ceilings/stream_probe.h"
#include "costs/point_ceilings.h"
#include "mpi/comm.h"
#include "plan/sweep_point.h"

namespace epsweep {

// The ranks that work together in a point, seen from one of them.
struct WorkingRanks {
  const Comm& comm;
  const std::vector<int>& world_ranks;  // ascending
  RanksTogether together;
};

// Every rank has one and calls it at the same places; numbers are on rank 0 only.
class RunCeilings {
 public:
  // kernels: whose GEMM rates make the ceiling.
  explicit RunCeilings(std::vector<std::string> kernels) : kernels_(std::move(kernels)) {}

  // Whether ranks of these have still to be measured for points of that dtype.
  bool lacks_rates(const std::vector<int>& world_ranks, DType dtype) const;
  bool lacks_exchange(const SweepPoint& point) const;

  // Collective over the working ranks. What was measured before is kept where it was better.
  void measure_rates(Backend& backend, DType dtype, const WorkingRanks& ranks);
  void measure_exchange(Backend& backend, Transport& transport, const SweepPoint& point,
                        const ExchangePlace& place, const WorkingRanks& ranks);

  // Of a point on these ranks. device_of_rank: equal for ranks that share one, by position in
  // world_ranks. Absent where nothing was measured.
  std::optional<PointCeilings> of(const SweepPoint& point, const std::vector<int>& world_ranks,
                                  const std::vector<int>& device_of_rank) const;
  // For run.json; null where nothing was measured.
  Json json() const;

 private:
  struct RankRates {
    StreamRates streams;
    std::map<DType, GemmRate> gemm;
  };
  struct Together {
    std::vector<RankRates> of_rank;  // empty on ranks other than 0
    std::vector<DType> dtypes;       // measured
  };
  struct Exchange {
    std::vector<std::int64_t> bytes_per_peer;  // [rungs]
    // [rungs], over repetitions; alpha and beta are of the best, as a ceiling is.
    std::vector<double> best_s, median_s;
    std::optional<double> count_exchange_s;
    std::optional<ExchangeLine> line;
  };
  using LayoutKey = std::tuple<int, Mapping, Groups, std::string>;  // ep_size, ..., transport

  static LayoutKey layout_key(const SweepPoint& point);
  void measure_streams(Backend& backend, const WorkingRanks& ranks,
                       std::vector<RankRates>& of_rank);
  void keep_gemm(const std::vector<double>& gathered, DType dtype, std::vector<RankRates>& of_rank);
  Json rates_json(const std::vector<int>& world_ranks, const Together& together) const;

  std::vector<std::string> kernels_;
  std::map<std::vector<int>, Together> rates_;
  std::map<LayoutKey, Exchange> exchanges_;
  struct Took {
    double streams_s = 0, gemm_s = 0, exchange_s = 0;
  } took_;
};

}  // namespace epsweep
