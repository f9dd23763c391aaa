// Expert statistics as TensorRT-LLM writes them: a folder with meta_info.json and a safetensors
// file for each rank, whose tensors are called "{iteration}_{layer}" (its reader:
// examples/wide_ep/ep_load_balancer/utils.py). A rank counts the tokens that it sends.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "workload/recordings/counts.h"
#include "workload/recordings/cut.h"
#include "workload/recordings/trace.h"
#include "workload/safetensors.h"

namespace epsweep {

struct TrtllmMeta {
  std::int64_t num_experts = 0;
  std::int64_t top_k = 0;  // num_experts_per_token
};
// Of meta_info.json; other keys are left alone. Throws ConfigError.
TrtllmMeta read_trtllm_meta(std::string_view text, const std::string& where);

// Order: iteration by iteration.
struct IterationLayer {
  std::int64_t iteration = 0, layer = 0;
  auto operator<=>(const IterationLayer&) const = default;
};
// Throws ConfigError for a name that is not "{iteration}_{layer}".
IterationLayer parse_tensor_name(const Tensor& tensor);

// What the names say: iterations without gaps, and the same layers in each of them.
struct RecordedIterations {
  std::int64_t first = 0, last = 0;  // both recorded
  std::vector<std::int64_t> layers;

  std::int64_t size() const { return last - first + 1; }
};
// `keys` ascending and distinct. Throws ConfigError where there are gaps.
RecordedIterations recorded_iterations(const std::vector<IterationLayer>& keys,
                                       const std::string& where);

// Counts of the ranks' files, "rank0.safetensors" and so on, added up.
class TrtllmCounts {
 public:
  explicit TrtllmCounts(const TrtllmMeta& meta) : meta_(meta) {}
  // In rank order; `bytes` need not outlive the call. Throws ConfigError.
  void add_rank(std::string_view bytes, const std::string& where);
  // After at least one rank.
  RecordedCounts finish(const std::string& where, const Cut& iterations);

 private:
  TrtllmMeta meta_;
  std::map<IterationLayer, std::vector<double>> sums_;
  int num_ranks_ = 0;
};

// Routes of the ranks' files, "rank0_raw.safetensors" and so on: the tokens of an iteration rank
// after rank, iteration after iteration; layers numbered from 0 in recorded order.
class TrtllmRoutes {
 public:
  explicit TrtllmRoutes(const TraceModel& model) : model_(model) {}
  // In rank order. Throws ConfigError.
  void add_rank(std::string_view bytes, const std::string& where);
  RecordedTrace finish(const std::string& where, const Cut& tokens);

 private:
  TraceModel model_;
  std::map<IterationLayer, std::vector<std::int64_t>> ids_;  // [tokens][top_k], unchecked values
  int num_ranks_ = 0;
};

// What a folder holds, read and checked. Throws ConfigError.
RecordedCounts read_trtllm_counts(const std::string& folder, const Cut& iterations);
RecordedTrace read_trtllm_routes(const std::string& folder, const TraceModel& model,
                                 const Cut& tokens);

}  // namespace epsweep
