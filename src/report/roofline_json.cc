#include "report/roofline_json.h"

namespace epsweep {

Json roofline_json(const std::optional<FfnRoofline>& roofline) {
  if (!roofline) return nullptr;
  return {{"flops", roofline->flops},
          {"bytes", roofline->bytes()},
          {"weight_bytes", roofline->weight_bytes},
          {"activation_bytes", roofline->activation_bytes},
          {"intensity_flop_per_byte", roofline->intensity()},
          {"ceiling_flop_per_s", roofline->rates.flop_per_s},
          {"ceiling_read_bytes_per_s", roofline->rates.read_bytes_per_s},
          {"attainable_flop_per_s", roofline->attainable_flop_per_s()},
          {"achieved_flop_per_s", roofline->achieved_flop_per_s()},
          {"share", roofline->share()},
          {"bound", to_string(roofline->bound())}};
}

std::string roofline_formula() {
  return "expert_ffn of the rank that is slowest in it most often, per layer, at its own p50: "
         "flops "
         "of routed rows; bytes = weights and scales of its experts with rows + rows in and out of "
         "the two products; attainable = min(its GEMM ceiling, its read ceiling * flops / bytes); "
         "share = achieved / attainable. Its ceilings were measured while all ranks measured: "
         "where others wait meanwhile, or rows come out of a cache, a share may pass 1";
}

}  // namespace epsweep
