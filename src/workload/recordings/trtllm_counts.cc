// TensorRT-LLM's counts per iteration, layer and sending rank.
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "workload/recordings/trtllm.h"

namespace epsweep {
namespace {

std::vector<double> read_counts(const Tensor& tensor, const TrtllmMeta& meta) {
  if (tensor.shape != std::vector<std::int64_t>{meta.num_experts}) {
    throw ConfigError(
        fmt::format("{}: shape [{}], expected [{}], one count for each expert of "
                    "meta_info.json",
                    tensor.where, fmt::join(tensor.shape, ","), meta.num_experts));
  }
  std::vector<double> counts = tensor_numbers(tensor);
  for (std::size_t e = 0; e < counts.size(); ++e) {
    const std::string problem = count_problem(counts[e]);
    if (problem.empty()) continue;
    throw ConfigError(fmt::format("{}: expert {}: {} {}", tensor.where, e, counts[e], problem));
  }
  return counts;
}

std::vector<IterationLayer> keys_of(const std::map<IterationLayer, std::vector<double>>& sums) {
  std::vector<IterationLayer> keys;
  for (const auto& [key, counts] : sums) keys.push_back(key);
  return keys;
}

}  // namespace

void TrtllmCounts::add_rank(std::string_view bytes, const std::string& where) {
  const std::vector<Tensor> tensors = read_safetensors(bytes, where);
  std::map<IterationLayer, std::vector<double>> counts;
  for (const Tensor& tensor : tensors) {
    if (!counts.emplace(parse_tensor_name(tensor), read_counts(tensor, meta_)).second) {
      throw ConfigError(tensor.where + ": the same iteration and layer as another tensor");
    }
  }
  if (counts.empty()) throw ConfigError(where + ": holds no tensors");
  if (num_ranks_++ == 0) {
    sums_ = std::move(counts);
    return;
  }
  for (const auto& [key, sum] : sums_) {
    if (counts.contains(key)) continue;
    throw ConfigError(fmt::format("{}: has no tensor {}_{}, the ranks before it have", where,
                                  key.iteration, key.layer));
  }
  for (auto& [key, own] : counts) {
    const auto sum = sums_.find(key);
    if (sum == sums_.end()) {
      throw ConfigError(fmt::format("{}: has a tensor {}_{}, the ranks before it have none", where,
                                    key.iteration, key.layer));
    }
    for (std::size_t e = 0; e < own.size(); ++e) sum->second[e] += own[e];
  }
}

RecordedCounts TrtllmCounts::finish(const std::string& where, const Cut& iterations) {
  const RecordedIterations recorded = recorded_iterations(keys_of(sums_), where);
  const CutRange range = cut_range(iterations, recorded.size(), where, "iterations");
  std::map<std::int64_t, std::vector<double>> layers;
  for (auto& [key, counts] : sums_) {
    const std::int64_t place = key.iteration - recorded.first;
    std::vector<double>& sum = layers[key.layer];
    sum.resize(counts.size(), 0.0);
    if (place < range.begin || place >= range.end) continue;
    for (std::size_t e = 0; e < counts.size(); ++e) sum[e] += counts[e];
  }
  std::vector<CountsRow> rows;
  for (auto& [layer, counts] : layers) rows.push_back({layer, std::move(counts)});
  RecordedCounts result = counts_of_rows(std::move(rows));
  result.top_k = meta_.top_k;
  result.notes.insert(
      result.notes.begin(),
      {RoutingNote::Kind::note,
       fmt::format(
           "recorded at EP size {} with {} experts per token; counts are of the tokens each "
           "rank sent, added up over ranks and iterations {} to {} of {} to {}",
           num_ranks_, meta_.top_k, recorded.first + range.begin, recorded.first + range.end - 1,
           recorded.first, recorded.last)});
  return result;
}

}  // namespace epsweep
