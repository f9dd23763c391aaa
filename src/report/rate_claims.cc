#include "report/rate_claims.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/local_copy.h"

namespace epsweep {
namespace {

constexpr double kTera = 1e12, kGiga = 1e9;

class Claims {
 public:
  // Nothing where one of the two numbers is missing.
  void add(const std::string& what, double rate, const std::optional<double>& limit,
           const std::string& limit_name, const std::string& unit, LimitSource source) {
    if (!limit || !(rate > 0)) return;
    all.push_back({what, rate, *limit, limit_name, unit, source});
  }
  std::vector<RateClaim> all;
};

std::optional<double> times(const std::optional<double>& value, double factor) {
  return value ? std::optional(*value * factor) : std::nullopt;
}

// No source states a peak for fp32 products.
std::optional<double> declared_flop_per_s(const HardwareShape& hardware, DType dtype) {
  if (dtype == DType::fp32) return std::nullopt;
  return times(is_fp8(dtype) ? hardware.peak.fp8_tflops : hardware.peak.bf16_tflops, kTera);
}

// One rank's FFN.
void add_ffn(const PointRecordInput& input, int world_rank, std::size_t row, Claims& claims) {
  const int ep_rank = input.layout.ep_rank_of_rank.at(static_cast<std::size_t>(world_rank));
  const auto at = static_cast<std::size_t>(ep_rank);
  if (at >= input.workload->ffn_of_rank.size()) return;
  const FfnWork& work = input.workload->ffn_of_rank[at];
  const double seconds = input.timings->ffn_p50_s_of_rank.at(row) * input.point.num_routings();
  if (!(seconds > 0)) return;
  const double flop_rate = static_cast<double>(work.flops) / seconds;
  const double byte_rate = static_cast<double>(work.weight_bytes) / seconds;
  const std::string computes = fmt::format("expert_ffn of rank {} computes", world_rank);
  const std::string reads = fmt::format("expert_ffn of rank {} reads weights at", world_rank);
  const bool cold = input.point.weight_cache == WeightCache::flush;
  if (input.ceilings) {
    const RankCeilings& rank = input.ceilings->ranks.at(row);
    claims.add(computes, flop_rate, rank.shared_flop_per_s,
               "large GEMMs of all ranks on its device", "FLOP", LimitSource::measured);
    if (cold && !rank.cached) {
      claims.add(reads, byte_rate, rank.shared_read_bytes_per_s,
                 "streams of all ranks on its device", "B", LimitSource::measured);
    }
  }
  if (!input.point.hardware) return;
  const HardwareShape& hardware = *input.point.hardware;
  const std::string peak = fmt::format("the peak declared for {}", hardware.name);
  claims.add(computes, flop_rate, declared_flop_per_s(hardware, input.point.dtype), peak, "FLOP",
             LimitSource::declared);
  if (!cold) return;
  claims.add(reads, byte_rate, times(hardware.peak.memory_tb_per_s, kTera), peak, "B",
             LimitSource::declared);
}

// Bytes that a rank sends on average, in the time of the slowest: less than any rank's real rate.
void add_exchange(const PointRecordInput& input, Stage stage, Claims& claims) {
  if (input.point.transport == kLocalCopy) return;  // nothing is sent
  const Traffic& traffic = input.workload->traffic;
  const auto seconds =
      input.timings->stages[static_cast<std::size_t>(stage)].slowest_s.p50.value_or(0);
  if (!input.point.hardware || !traffic.domains || !(seconds > 0)) return;
  const bool per_rank = input.point.exchange_unit == ExchangeUnit::rank;
  const std::int64_t intra =
      per_rank ? traffic.domains->b_intra_copies : traffic.domains->a_intra_copies;
  const std::int64_t remote = per_rank ? traffic.b_copies - traffic.b_self_copies
                                       : traffic.a_copies - traffic.a_self_copies;
  const auto rate = [&](std::int64_t copies) {
    return static_cast<double>(copies) * static_cast<double>(traffic.row_bytes) /
           input.point.num_routings() / input.point.ep_size / seconds;
  };
  const HardwareShape& hardware = *input.point.hardware;
  const std::string name(kStageNames[static_cast<std::size_t>(stage)]);
  claims.add(name + " sends inside a domain, per rank,", rate(intra),
             times(hardware.peak.link_gb_per_s, kGiga),
             fmt::format("the link declared for {}", hardware.name), "B", LimitSource::declared);
  claims.add(name + " sends beyond the domain, per rank,", rate(remote - intra),
             times(hardware.peak.nic_gbit_per_s, kGiga / 8),
             fmt::format("the NIC declared for {}", hardware.name), "B", LimitSource::declared);
}

}  // namespace

std::vector<RateClaim> rate_claims(const PointRecordInput& input) {
  EPS_EXPECT(input.timings.has_value() && input.workload.has_value(),
             "only measured points have rates");
  Claims claims;
  const std::vector<int> world_ranks = active_ranks(input.layout);
  for (std::size_t row = 0; row < world_ranks.size(); ++row) {
    add_ffn(input, world_ranks[row], row, claims);
  }
  for (const Stage stage : {Stage::dispatch, Stage::combine}) add_exchange(input, stage, claims);
  return claims.all;
}

}  // namespace epsweep
