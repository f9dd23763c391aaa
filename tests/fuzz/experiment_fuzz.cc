// Experiment files: YAML to SweepSpec to Plan.
#include "fuzz/fuzz_target.h"
#include "plan/plan.h"

namespace epsweep {
namespace {

Catalogs catalogs() {
  const ParamSpec alpha = {.name = "zipf_alpha", .min = 0, .max = 8, .default_value = 1};
  return {
      .distributions = {{"uniform", "", {}}, {"zipf", "", {alpha}, "zipf_alpha"}},
      .placements = {{"contiguous", SlotRule::one_per_expert}, {"eplb", SlotRule::equal_per_rank}},
      .transports = {"alltoallv", "pairwise"},
      .grouped_gemms = {"onednn", "reference"},
      .default_transport = "pairwise",
      .default_grouped_gemm = "onednn"};
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds = shipped_texts("configs/experiments");
  seeds.push_back(
      "name: t\nmodel: {name: m, hidden_dim: 8, ffn_dim: 4, num_experts: 8, top_k: 2, "
      "num_moe_layers: 1}\nep_sizes: [1, 2]\nconcurrency: {fixed_global: {from: 1, to: 64, factor: "
      "2}, tokens_per_rank: [[1, 0]]}\nrouting: [uniform, {distribution: zipf, max_over_mean: 3}]\n"
      "topology: {hosts: [2, 2]}\nplacement: [contiguous, eplb]\nredundant_slots: [0, 4]\n");
  seeds.push_back("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n");
  return seeds;
}

}  // namespace epsweep

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace epsweep;
  static const SpecSources sources = {.models_dir = EPSWEEP_SOURCE_DIR "/configs/models",
                                      .catalogs = catalogs()};
  refuse_politely(
      [&] { make_plan(read_sweep_spec(as_text(data, size), "fuzz.yaml", {}, sources)); });
  return 0;
}
