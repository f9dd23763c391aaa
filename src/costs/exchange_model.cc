#include "costs/exchange_model.h"

#include <algorithm>
#include <set>
#include <vector>

#include <fmt/format.h>

namespace epsweep {
namespace {

double bytes_of_reach(const ExchangeDemand& demand) {
  return demand.reach == Reach::within_domain ? demand.bytes.intra : demand.bytes.inter;
}

std::optional<FabricLine> fit_fabric(std::span<const ExchangeObservation> observations,
                                     Reach reach) {
  std::set<int, std::greater<>> sizes;
  for (const ExchangeObservation& one : observations) {
    if (one.of.reach == reach) sizes.insert(one.of.ep_size);
  }
  if (sizes.empty()) return std::nullopt;
  const int widest = *sizes.begin();
  const int narrowest = sizes.size() < 2 ? widest : *std::next(sizes.begin());
  std::vector<ExchangeSample> samples;
  for (const ExchangeObservation& one : observations) {
    if (one.of.reach != reach || one.of.ep_size < narrowest) continue;
    samples.push_back({.remote_bytes = bytes_of_reach(one.of), .seconds = one.seconds});
  }
  const std::optional<ExchangeLine> line = fit_exchange(samples);
  if (!line) return std::nullopt;
  return FabricLine{.line = *line, .narrowest = narrowest, .widest = widest};
}

std::string not_crossed(const FabricLine& known, const ExchangeDemand& demand) {
  const std::string sizes = known.narrowest == known.widest
                                ? fmt::format("EP{}", known.widest)
                                : fmt::format("EP{} and EP{}", known.narrowest, known.widest);
  if (demand.reach == Reach::across_domains) {
    return fmt::format(
        "EP{} spans several domains, and the calibration ({}) never left one: it says nothing "
        "about the links between them",
        demand.ep_size, sizes);
  }
  return fmt::format(
      "EP{} stays inside a domain, and the calibration ({}) only has groups that span several: it "
      "says nothing about the links inside one",
      demand.ep_size, sizes);
}

}  // namespace

ExchangeModel fit_exchange_model(std::span<const ExchangeObservation> observations) {
  return {.within = fit_fabric(observations, Reach::within_domain),
          .across = fit_fabric(observations, Reach::across_domains)};
}

ExchangeForecast forecast_exchange(const ExchangeModel& model, const ExchangeDemand& demand) {
  ExchangeForecast forecast;
  const bool leaves = demand.reach == Reach::across_domains;
  const std::optional<FabricLine>& needed = leaves ? model.across : model.within;
  if (!needed) {
    const std::optional<FabricLine>& other = leaves ? model.within : model.across;
    forecast.refusal = other ? not_crossed(*other, demand)
                             : "the calibration has no exchange that grows with its bytes";
    return forecast;
  }
  const auto parts = [&forecast](Reach fabric, const ExchangeLine& line, double bytes) {
    forecast.fabric = fabric;
    forecast.alpha_s = line.alpha_s;
    forecast.bytes_s = bytes / line.beta_bytes_per_s;
  };
  parts(demand.reach, needed->line, bytes_of_reach(demand));
  const double seconds = needed->line.predict_s(bytes_of_reach(demand));
  if (leaves && model.within && model.within->line.predict_s(demand.bytes.intra) > seconds) {
    parts(Reach::within_domain, model.within->line, demand.bytes.intra);
  }
  forecast.time = forecast_of(forecast.alpha_s + forecast.bytes_s,
                              doublings_outside(demand.ep_size, needed->narrowest, needed->widest),
                              kExchangeError);
  return forecast;
}

ExchangeLimit exchange_limit(double residual) {
  if (residual > kFabricResidual) return ExchangeLimit::software_or_contention;
  return residual < -kFabricResidual ? ExchangeLimit::faster_than_modelled : ExchangeLimit::fabric;
}

}  // namespace epsweep
