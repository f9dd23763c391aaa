// The model's own router chooses, from the tokens and gate weights that the layer computes with.
#include "workload/gate.h"

#include <memory>

#include "base/error.h"
#include "workload/distribution.h"

namespace epsweep {
namespace {

// Costs 2 * num_experts * hidden_dim operations per token and layer, on every rank: about 0.4 ms
// per token for a router of DeepSeek-V3's size (256 x 7168). Steps differ by their tokens, layers
// by their gate weights.
TokenRouter make(const RoutingContext& context) {
  EPS_EXPECT(context.model != nullptr, "a routing without its model");
  const auto gate =
      std::make_shared<const LayerGate>(context.seed, context.layer, *context.model, context.step);
  return [gate](std::int64_t token, std::span<std::int32_t> experts) {
    gate->router().choose(gate->logits(token), experts);
  };
}

const bool registered = DistributionCatalog::instance().add(
    {"gate",
     "the model's own router chooses, groups and selection bias included",
     {},
     make,
     {},
     nullptr,
     Foresight::sampled_by_gate});

}  // namespace
}  // namespace epsweep
