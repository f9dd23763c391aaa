// How many layers run back to back when they are timed among others.
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

}  // namespace epsweep
