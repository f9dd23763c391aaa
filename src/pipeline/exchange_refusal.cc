#include "pipeline/exchange_refusal.h"

#include <algorithm>

#include "device/transport.h"
#include "pipeline/local_copy.h"
#include "workload/pair_capacity.h"

namespace epsweep {
namespace {

std::optional<std::string> launch_refusal(const TransportEntry& transport,
                                          const BackendInfo& backend) {
  if (std::ranges::find(backend.launches, Launch::graph) == backend.launches.end()) {
    return "launch graph: backend " + backend.name + " has no graphs to capture a layer into";
  }
  if (transport.capacity == Capacity::exact) {
    return "launch graph: the host waits for row counts in every layer of transport " +
           transport.name + ", which no graph can; a transport of fixed capacity does not";
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> exchange_refusal(const RankWork& work, const BackendInfo& backend) {
  const SweepPoint& point = work.point;
  const TransportEntry& transport = TransportCatalog::instance().at(point.transport);
  const TransportEntry& real = real_transport(point.transport, backend.name);
  if (real.refuses != nullptr) {
    if (const auto reason = real.refuses()) return "transport " + real.name + ": " + *reason;
  }
  if (point.launch == Launch::graph) {
    if (auto reason = launch_refusal(transport, backend)) return reason;
  }
  if (transport.capacity == Capacity::exact) return std::nullopt;
  if (point.exchange_unit == ExchangeUnit::rank) {
    return "transport " + transport.name +
           ": of exchange unit rank the host must see which copies arrived, and it sees none";
  }
  const auto overflow = capacity_refusal(point, work.most_pair_rows);
  return overflow ? std::optional("transport " + transport.name + ": " + *overflow) : std::nullopt;
}

}  // namespace epsweep
