// TensorRT-LLM's raw recordings: the experts of every token, by the rank that held it.
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "workload/recordings/trtllm.h"

namespace epsweep {

void TrtllmRoutes::add_rank(std::string_view bytes, const std::string& where) {
  std::size_t num_tensors = 0;
  for (const Tensor& tensor : read_safetensors(bytes, where)) {
    const IterationLayer key = parse_tensor_name(tensor);
    // Another set of tensors would put tokens of one layer or iteration into another's place.
    if (num_ranks_ > 0 && !ids_.contains(key)) {
      throw ConfigError(tensor.where + ": the files of the ranks before have no such tensor");
    }
    ++num_tensors;
    if (tensor.shape.size() != 2 || tensor.shape[1] != model_.top_k) {
      throw ConfigError(fmt::format("{}: shape [{}], expected [tokens,{}] for the model's top_k {}",
                                    tensor.where, fmt::join(tensor.shape, ","), model_.top_k,
                                    model_.top_k));
    }
    const std::vector<std::int64_t> ids = tensor_integers(tensor);
    const auto top_k = static_cast<std::size_t>(model_.top_k);
    for (std::size_t begin = 0; begin < ids.size(); begin += top_k) {
      const std::string problem = token_problem(model_, std::span(ids).subspan(begin, top_k));
      if (!problem.empty()) {
        throw ConfigError(fmt::format("{}: token {}: {}", tensor.where, begin / top_k, problem));
      }
    }
    std::vector<std::int64_t>& all = ids_[key];
    all.insert(all.end(), ids.begin(), ids.end());
  }
  if (num_tensors != ids_.size()) {
    throw ConfigError(fmt::format("{}: {} tensors, the files of the ranks before have {}", where,
                                  num_tensors, ids_.size()));
  }
  ++num_ranks_;
}

RecordedTrace TrtllmRoutes::finish(const std::string& where, const Cut& tokens) {
  std::vector<IterationLayer> keys;
  for (const auto& [key, ids] : ids_) keys.push_back(key);
  const RecordedIterations recorded = recorded_iterations(keys, where);
  TraceBuilder trace(model_);
  const auto top_k = static_cast<std::size_t>(model_.top_k);
  std::int64_t place = 0;
  for (const auto& [key, ids] : ids_) {
    for (std::size_t begin = 0; begin < ids.size(); begin += top_k) {
      trace.add_token(place, std::span(ids).subspan(begin, top_k));
    }
    place = (place + 1) % static_cast<std::int64_t>(recorded.layers.size());
  }
  RecordedTrace result = trace.finish(where, tokens);
  result.notes.insert(
      result.notes.begin(),
      {RoutingNote::Kind::note,
       fmt::format("recorded at EP size {}, iterations {} to {}; layers 0 to {} are the recorded "
                   "layers {}",
                   num_ranks_, recorded.first, recorded.last, recorded.layers.size() - 1,
                   fmt::join(recorded.layers, ", "))});
  return result;
}

}  // namespace epsweep
