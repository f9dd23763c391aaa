// One rank's weights for all layers of a point, in the kernel's own layout.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/backend.h"
#include "device/grouped_gemm.h"
#include "pipeline/rank_work.h"

namespace epsweep {

struct LayerWeights {
  Buffer gate;            // fp32 [num_experts][hidden_dim]
  Buffer selection_bias;  // fp32 [num_experts]; no bytes if the model has none
  std::unique_ptr<GroupedGemm> gate_up, down;
};

struct ExpertWeights {
  // Points with equal keys share weights.
  std::string key;
  std::vector<LayerWeights> layers;

  void flush_from_caches();
};

// Makes the kernel of one matrix; where faults are injected, not the catalog's own.
using GemmMaker = std::function<std::unique_ptr<GroupedGemm>(const GemmShape& shape)>;

GemmShape gate_up_shape(const RankWork& work);
GemmShape down_shape(const RankWork& work);

// Why the point's kernel cannot compute this rank's experts; empty if it can.
std::string kernel_refusal(const RankWork& work);

// What the kernel's objects of all layers allocate for this rank's rows.
std::int64_t kernel_scratch_bytes(const RankWork& work, const GroupedGemmEntry& entry);

std::string weights_key(const RankWork& work);
// Generates and packs; takes about a second per GB.
ExpertWeights prepare_weights(const RankWork& work, Backend& backend, const GemmMaker& make_gemm);

}  // namespace epsweep
