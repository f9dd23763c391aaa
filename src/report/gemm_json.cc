#include "report/gemm_json.h"

#include <algorithm>

#include "base/statistics.h"
#include "report/point_record.h"

namespace epsweep {
namespace {

using GemmTable = std::vector<std::vector<GemmCounts>>;

struct GemmDims {
  std::int64_t n = 0, k = 0;
};

struct CountKey {
  const char* name;
  std::int64_t GemmCounts::*count;
};
constexpr CountKey kCounts[] = {{"kernel_calls", &GemmCounts::kernel_calls},
                                {"routed_rows", &GemmCounts::routed_rows},
                                {"computed_rows", &GemmCounts::computed_rows},
                                {"stored_rows", &GemmCounts::stored_rows},
                                {"workspace_bytes", &GemmCounts::workspace_bytes}};

std::int64_t sum_of(const GemmTable& table, std::int64_t GemmCounts::*count) {
  std::int64_t sum = 0;
  for (const std::vector<GemmCounts>& layer : table) {
    for (const GemmCounts& rank : layer) sum += rank.*count;
  }
  return sum;
}

// Kernels of all layers exist at once, so a rank's memory is their sum.
std::int64_t largest_rank_workspace(const GemmTable& table) {
  std::vector<std::int64_t> of_rank;
  for (const std::vector<GemmCounts>& layer : table) {
    of_rank.resize(std::max(of_rank.size(), layer.size()));
    for (std::size_t rank = 0; rank < layer.size(); ++rank) {
      of_rank[rank] += layer[rank].workspace_bytes;
    }
  }
  return of_rank.empty() ? 0 : *std::max_element(of_rank.begin(), of_rank.end());
}

Json per_layer_json(const GemmTable& table) {
  Json json = Json::object();
  for (const CountKey& key : kCounts) {
    Json layers = Json::array();
    for (const std::vector<GemmCounts>& layer : table) {
      Json ranks = Json::array();
      for (const GemmCounts& rank : layer) ranks.push_back(rank.*key.count);
      layers.push_back(std::move(ranks));
    }
    json[key.name] = std::move(layers);
  }
  return json;
}

Json choices_json(const GemmTable& table) {
  Json json = Json::array();
  for (std::size_t layer = 0; layer < table.size(); ++layer) {
    for (std::size_t rank = 0; rank < table[layer].size(); ++rank) {
      const Json& choice = table[layer][rank].choice;
      if (choice.is_null()) continue;
      Json entry = {{"layer", layer}, {"rank", rank}};
      entry.update(choice);
      json.push_back(std::move(entry));
    }
  }
  return json.empty() ? Json(nullptr) : json;
}

Json gemm_json(const GemmDims& dims, const Json& rows, const GemmTable* table) {
  Json json = {{"n", dims.n}, {"k", dims.k}, {"rows_per_expert", rows}};
  for (const CountKey& key : kCounts) json[key.name] = nullptr;
  for (const char* key : {"per_layer", "choices"}) json[key] = nullptr;
  if (table == nullptr) return json;
  for (const CountKey& key : kCounts) json[key.name] = sum_of(*table, key.count);
  json["workspace_bytes"] = largest_rank_workspace(*table);
  json["per_layer"] = per_layer_json(*table);
  json["choices"] = choices_json(*table);
  return json;
}

}  // namespace

Json m_distribution_json(const ModelShape& model, const std::vector<std::int64_t>& rows,
                         const std::optional<FfnGemms>& gemms) {
  const Json summary = row_summary_json(summarize_rows(rows));
  const GemmTable* gate_up = gemms.has_value() ? &gemms->gate_up : nullptr;
  const GemmTable* down = gemms.has_value() ? &gemms->down : nullptr;
  return {{"gate_up", gemm_json({model.gate_up_cols(), model.expert_io_dim}, summary, gate_up)},
          {"down", gemm_json({model.expert_io_dim, model.ffn_dim}, summary, down)}};
}

std::string m_distribution_formula() {
  return "one group, summed over layers, steps and ranks; per_layer: [step, layer][EP rank]. "
         "kernel_calls: kernel launches, library calls and copies of rows or pointers, not waits "
         "for events; computed_rows: rows multiplied, routed rows and the kernel's padding, "
         "without what a library's own tiles add inside a call; stored_rows: rows of memory the "
         "products read from; workspace_bytes: device or host memory of the kernel besides "
         "weights, inputs and outputs, of the largest rank, all layers. choices: what a kernel "
         "that picks among others took, and what it measured (median us, caches flushed, on that "
         "rank's own row counts; auto_cpu: from its table by rows of an expert, added up): the "
         "fastest, or the one of fewest calls within 2 % of it. amx: the code it runs";
}

}  // namespace epsweep
