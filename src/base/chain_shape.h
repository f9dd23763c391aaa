// How many layers run back to back when they are timed among others, and with which routings.
#pragma once

namespace epsweep {

inline constexpr int kFewestChainLayers = 4;

// All of a point's layers, often enough to be at least four.
constexpr int chain_layers_for(int num_layers) {
  return (kFewestChainLayers + num_layers - 1) / num_layers * num_layers;
}

// Layers at the begin of a chain that do not count: a quarter. Ranks start it together, as no layer
// of a running model does.
constexpr int fill_layers_of(int chain_layers) {
  return chain_layers / kFewestChainLayers;
}

// Which of num_routings = layers * steps the layer at `position` of an iteration, or of a chain,
// has: iterations begin one step later each, so that what counts of a chain is every step alike.
constexpr int routing_at(int layers, int num_routings, int iteration, int position) {
  const int step =
      (iteration % (num_routings / layers) + position / layers) * layers % num_routings;
  return step + position % layers;
}

}  // namespace epsweep
