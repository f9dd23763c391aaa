// A time that nobody measured, and how far from measurements it is.
#pragma once

namespace epsweep {

// doublings: how often EP size (or slots per rank) doubles or halves from the nearest that was
// calibrated; 0 inside.
struct TimeForecast {
  double seconds = 0;
  double low_s = 0, high_s = 0;
  double doublings = 0;
};

// What predictions err by in each doubling beyond the calibration. Of exchanges: published times of
// DeepEP V1 (docs/legacy.md of deepseek-ai/DeepEP@dd758caf) and of TensorRT-LLM's exchange on GB200
// (ai-dynamo/aiconfigurator@095f58a5), fitted on narrow sizes, are 3, 7 and 12 % above what the fit
// says of sizes one, two and three doublings wider, and hardly ever below it: there is a cost by
// peer that no byte count has. Of FFNs: DeepGEMM's masked kernel on H800
// (alibaba/InferSim@f2293dab) fitted on 16 to 64 slots and asked about 8 to 1. Both are tests
// (tests/unit/costs/backtest_*).
struct ErrorPerDoubling {
  double below = 0, above = 0;
};
inline constexpr ErrorPerDoubling kExchangeError = {.below = 0.03, .above = 0.05};
inline constexpr ErrorPerDoubling kFfnError = {.below = 0.07, .above = 0.07};

TimeForecast forecast_of(double seconds, double doublings, const ErrorPerDoubling& error);

// |log2(value / nearest bound)|, 0 inside [low, high]; all positive.
double doublings_outside(double value, double low, double high);

}  // namespace epsweep
