// Finding the files of a TensorRT-LLM recording.
#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "workload/recordings/trtllm.h"

namespace epsweep {
namespace {

// The number in "rank{N}{suffix}"; -1 for another name.
std::int64_t rank_of_name(std::string_view name, std::string_view suffix) {
  constexpr std::string_view kPrefix = "rank";
  if (!name.starts_with(kPrefix) || !name.ends_with(suffix)) return -1;
  if (name.size() <= kPrefix.size() + suffix.size()) return -1;
  name = name.substr(kPrefix.size(), name.size() - kPrefix.size() - suffix.size());
  std::int64_t rank = -1;
  const auto [rest, error] = std::from_chars(name.data(), name.data() + name.size(), rank);
  return error == std::errc() && rest == name.data() + name.size() ? rank : -1;
}

// Paths of all ranks' files, in rank order. A rank that is missing would be missing in the sums.
std::vector<std::string> rank_files(const std::string& folder, std::string_view suffix) {
  struct File {
    std::int64_t rank;
    std::string name;
  };
  std::vector<File> files;
  for (std::string& name : file_names(folder)) {
    const std::int64_t rank = rank_of_name(name, suffix);
    if (rank >= 0) files.push_back({rank, std::move(name)});
  }
  std::ranges::sort(files, {}, &File::rank);
  if (files.empty()) {
    throw ConfigError(fmt::format("{}: a folder without rank*{} files as TensorRT-LLM writes them",
                                  folder, suffix));
  }
  std::vector<std::string> paths;
  for (const File& file : files) {
    if (file.rank != static_cast<std::int64_t>(paths.size())) {
      throw ConfigError(
          fmt::format("{}: expected rank{}{} next to {}: ranks must be complete and "
                      "appear once",
                      folder, paths.size(), suffix, file.name));
    }
    paths.push_back(fmt::format("{}/{}", folder, file.name));
  }
  return paths;
}

TrtllmMeta meta_of(const std::string& folder) {
  const std::string path = folder + "/meta_info.json";
  return read_trtllm_meta(read_text_file(path), path);
}

}  // namespace

RecordedCounts read_trtllm_counts(const std::string& folder, const Cut& iterations) {
  TrtllmCounts counts(meta_of(folder));
  for (const std::string& path : rank_files(folder, ".safetensors")) {
    counts.add_rank(read_text_file(path), path);
  }
  return counts.finish(folder, iterations);
}

RecordedTrace read_trtllm_routes(const std::string& folder, const TraceModel& model,
                                 const Cut& tokens) {
  const TrtllmMeta meta = meta_of(folder);
  if (meta.num_experts != model.num_experts || meta.top_k != model.top_k) {
    throw ConfigError(fmt::format("{}: recorded with {} of {} experts, the model has {} of {}",
                                  folder, meta.top_k, meta.num_experts, model.top_k,
                                  model.num_experts));
  }
  TrtllmRoutes routes(model);
  for (const std::string& path : rank_files(folder, "_raw.safetensors")) {
    routes.add_rank(read_text_file(path), path);
  }
  return routes.finish(folder, tokens);
}

}  // namespace epsweep
