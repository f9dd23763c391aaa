// tests/data/model_expectations.csv: what each published model's numbers are.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "base/text.h"
#include "plan/model_shape.h"

namespace epsweep::testing {

inline std::string source_path(const std::string& relative) {
  return std::string(EPSWEEP_SOURCE_DIR) + "/" + relative;
}

// Column name to text; no field of the file holds a comma.
using Expectation = std::map<std::string, std::string>;

inline std::vector<std::string> split_fields(const std::string& line) {
  std::vector<std::string> fields(1);
  for (const char c : line) {
    if (c == ',') {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

inline std::map<std::string, Expectation> read_expectations() {
  std::istringstream lines(read_text_file(source_path("tests/data/model_expectations.csv")));
  std::string line;
  std::getline(lines, line);
  const std::vector<std::string> columns = split_fields(line);
  std::map<std::string, Expectation> rows;
  while (std::getline(lines, line)) {
    const std::vector<std::string> fields = split_fields(line);
    EXPECT_EQ(fields.size(), columns.size()) << line;
    Expectation row;
    for (std::size_t i = 0; i < columns.size(); ++i) row[columns[i]] = fields.at(i);
    rows[row["name"]] = row;
  }
  return rows;
}

inline std::optional<std::int64_t> optional_number(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional<std::int64_t>(std::stoll(text));
}

// Every column but the cache per token and the weight type, which some copied configs leave open.
inline void expect_shape(const ModelShape& model, const Expectation& row) {
  const auto number = [&](const char* column) { return std::stoll(row.at(column)); };
  EXPECT_EQ(model.hidden_dim, number("hidden_dim"));
  EXPECT_EQ(model.expert_io_dim, number("expert_io_dim"));
  EXPECT_EQ(model.ffn_dim, number("ffn_dim"));
  EXPECT_EQ(model.num_experts, number("num_experts"));
  EXPECT_EQ(model.top_k, number("top_k"));
  EXPECT_EQ(model.gemms_per_expert, number("gemms_per_expert"));
  EXPECT_EQ(model.shared_ffn_dim, number("shared_ffn_dim"));
  EXPECT_EQ(model.num_layers, number("num_layers"));
  EXPECT_EQ(model.num_moe_layers, number("num_moe_layers"));
  EXPECT_EQ(scoring_names()[static_cast<std::size_t>(model.router.scoring)], row.at("scoring"));
  EXPECT_EQ(model.router.renormalize ? "true" : "false", row.at("renormalize"));
  EXPECT_DOUBLE_EQ(model.router.scale, std::stod(row.at("scale")));
  EXPECT_EQ(model.router.num_groups, number("num_groups"));
  EXPECT_EQ(model.router.topk_groups, number("topk_groups"));
  EXPECT_EQ(model.router.selection_bias ? "true" : "false", row.at("selection_bias"));
  EXPECT_EQ(model.attention.kind, row.at("attention_kind"));
  EXPECT_EQ(model.attention.kv_heads, optional_number(row.at("kv_heads")));
  EXPECT_EQ(model.attention.head_dim, optional_number(row.at("head_dim")));
  EXPECT_EQ(model.attention.kv_lora_rank, optional_number(row.at("kv_lora_rank")));
  EXPECT_EQ(model.attention.qk_rope_head_dim, optional_number(row.at("qk_rope_head_dim")));
  EXPECT_EQ(model.expert_params(), number("expert_params"));
  EXPECT_EQ(model.expert_params() * model.num_experts * model.num_moe_layers,
            number("expert_params_total"));
}

inline void expect_kv(const ModelShape& model, const Expectation& row) {
  EXPECT_EQ(model.attention.kv_layers, optional_number(row.at("kv_layers")));
  EXPECT_EQ(model.attention.kv_bytes_per_token, optional_number(row.at("kv_bytes_per_token")));
}

}  // namespace epsweep::testing
