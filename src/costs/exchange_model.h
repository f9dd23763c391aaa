// What an exchange of another EP size takes, from exchanges that were timed.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "costs/exchange_fit.h"
#include "costs/forecast.h"

namespace epsweep {

// Whether the ranks of a group are all in one scale-up domain. The way out of it (a NIC) is another
// fabric with other constants: nothing measured inside says anything about it.
enum class Reach { within_domain, across_domains };

// Of the rank that moves most, to other ranks: inside its domain and beyond. Counted as the
// transport sends them: letter A (a copy per assignment) where every chosen expert gets its own
// copy, letter B or D where a destination rank gets one for all its experts; scales included.
struct FabricBytes {
  double intra = 0, inter = 0;
};

// One dispatch or combine.
struct ExchangeDemand {
  int ep_size = 0;
  Reach reach = Reach::within_domain;
  FabricBytes bytes;
};
struct ExchangeObservation {
  ExchangeDemand of;
  double seconds = 0;
};

// One fabric, and the EP sizes that its line was fitted on.
struct FabricLine {
  ExchangeLine line;
  int narrowest = 0, widest = 0;
};

// At a fixed number of tokens the lines are t = a + s * f(P), f = the remote copies of a token.
struct ExchangeModel {
  std::optional<FabricLine> within;  // over intra-domain bytes of groups in one domain
  std::optional<FabricLine> across;  // over inter-domain bytes of groups in several
};

// Every fabric's line goes through its two widest sizes (fit_exchange() of their observations; one
// size with several byte counts will do): narrower sizes pay fewer peers, and including them makes
// wide forecasts worse (published GB200 times one doubling on: 0.7 % off instead of 2.7 %). Lines
// that fit_exchange() refuses are absent.
ExchangeModel fit_exchange_model(std::span<const ExchangeObservation> observations);

struct ExchangeForecast {
  std::optional<TimeForecast> time;
  std::string refusal;  // why there is no time; empty where there is
  // The parts of the fabric that decides: alpha_s + bytes_s = seconds.
  double alpha_s = 0, bytes_s = 0;
  Reach fabric = Reach::within_domain;
};

// Links of a domain and NICs move side by side, so the slower one decides. A group that leaves its
// domain needs a line of groups that did; one that does not needs a line of groups that did not:
// either is refused otherwise. Sizes between or below the calibrated ones count doublings too.
ExchangeForecast forecast_exchange(const ExchangeModel& model, const ExchangeDemand& demand);

// What the distance of a measured exchange from its prediction says; beyond 15 % either way the
// fabric as modelled is not the reason. Published times of kernels that a CPU proxy or their own
// software limits take 1.4 to 6 times the prediction, those that the fabric limits at most 1.21
// (pplx-kernels' and DeepEP's READMEs, pplx-garden docs/fabric-lib.md, NCCL EP's README).
inline constexpr double kFabricResidual = 0.15;
enum class ExchangeLimit { fabric, software_or_contention, faster_than_modelled };
constexpr const char* to_string(ExchangeLimit limit) {
  if (limit == ExchangeLimit::fabric) return "fabric-limited as modelled";
  return limit == ExchangeLimit::software_or_contention ? "software- or contention-limited"
                                                        : "faster than the fabric as modelled";
}
// residual = measured / predicted - 1.
ExchangeLimit exchange_limit(double residual);

}  // namespace epsweep
