// A small point with known numbers, and scratch directories, for the tests of this folder.
#pragma once

#include <filesystem>
#include <string>

#include <stdlib.h>

#include "report/point_record.h"
#include "report/timing_table.h"

namespace epsweep::testing {

// 8 experts, top_k 2, rows of 16 bf16 values: 32 bytes.
inline ModelShape sample_model() {
  ModelShape model;
  model.name = "tiny";
  model.hidden_dim = 16;
  model.expert_io_dim = 16;
  model.ffn_dim = 8;
  model.num_experts = 8;
  model.top_k = 2;
  model.num_layers = 1;
  model.num_moe_layers = 1;
  return model;
}

inline SweepPoint sample_point(int ep_size, std::int64_t tokens,
                               ConcurrencyMode mode = ConcurrencyMode::fixed_global) {
  SweepPoint point;
  point.model = sample_model();
  point.ep_size = ep_size;
  point.concurrency = {mode, tokens, {}};
  point.routing.distribution = "uniform";
  point.placement = "contiguous";
  point.transport = "pairwise";
  point.grouped_gemm = "plain";
  point.iterations = 20;
  return point;
}

// One group on ranks 0..ep_size-1 of a world of `world_size`.
inline GroupLayout sample_layout(int world_size, int ep_size) {
  GroupLayout layout;
  layout.ep_size = ep_size;
  layout.num_groups = 1;
  for (int rank = 0; rank < world_size; ++rank) {
    const bool active = rank < ep_size;
    layout.group_of_rank.push_back(active ? 0 : -1);
    layout.ep_rank_of_rank.push_back(active ? rank : -1);
    if (!active) layout.idle_ranks.push_back(rank);
  }
  return layout;
}

// Every stage of every rank takes `stage_s`, back to back, and half of it in CPU time.
inline TimingTable even_times(int num_ranks, int num_iterations, double stage_s,
                              int num_layers = 1) {
  TimingTable table(num_ranks, num_iterations, num_layers);
  for (int r = 0; r < num_ranks; ++r) {
    for (int i = 0; i < num_iterations; ++i) {
      for (int l = 0; l < num_layers; ++l) {
        for (int s = 0; s < kNumStages; ++s) {
          const auto stage = static_cast<Stage>(s);
          const int position = l * kNumStages + s;
          table.at(r, i, l, stage, Measure::begin_s) = position * stage_s;
          table.at(r, i, l, stage, Measure::end_s) = (position + 1) * stage_s;
          table.at(r, i, l, stage, Measure::cpu_s) = stage_s / 2;
        }
      }
    }
  }
  return table;
}

// Layers of `layer_s` back to back on every rank.
inline ChainTable even_chains(int num_ranks, int num_chains, double layer_s) {
  ChainTable table(num_ranks, num_chains, 4);
  for (int r = 0; r < num_ranks; ++r) {
    for (int c = 0; c < num_chains; ++c) {
      for (int k = 0; k < 4; ++k) {
        table.begin_s(r, c, k) = k * layer_s;
        table.end_s(r, c, k) = (k + 1) * layer_s;
      }
    }
  }
  return table;
}

// All ranks in one group, on one clock.
inline PointSummary stages_summary(const TimingTable& table) {
  return summarize(table, one_group(table.num_ranks()));
}

// Those stages, and a layer among others that takes as long as they do.
inline PointSummary even_summary(const TimingTable& table, double layer_s) {
  PointSummary summary = stages_summary(table);
  summary.chain = summarize_chain(even_chains(table.num_ranks(), table.num_iterations(), layer_s));
  summary.chain->weights = "cold";
  return summary;
}

// 16 assignments of 8 tokens, two rows for every expert; half of the copies stay.
inline PointWorkload sample_workload(const SweepPoint& point) {
  const auto ep_size = static_cast<std::size_t>(point.ep_size);
  PointWorkload work;
  work.rows_per_expert = {{2, 2, 2, 2, 2, 2, 2, 2}};
  work.rows_per_rank = {std::vector<std::int64_t>(ep_size, 16 / point.ep_size)};
  work.traffic.row_bytes = 32;
  work.traffic.a_copies = 16;
  work.traffic.a_self_copies = point.ep_size == 1 ? 16 : 8;
  work.traffic.b_copies = 12;
  work.traffic.b_self_copies = point.ep_size == 1 ? 12 : 6;
  work.traffic.d_copies = point.ep_size == 1 ? 0 : 6;
  work.ffn = {.routed_rows = 16, .touched_experts = 8, .flops = 2 * 16 * 384, .weight_bytes = 6144};
  for (std::size_t rank = 0; rank < ep_size; ++rank) {
    work.ffn_of_rank.push_back({.routed_rows = work.ffn.routed_rows / point.ep_size,
                                .touched_experts = work.ffn.touched_experts / point.ep_size,
                                .flops = work.ffn.flops / point.ep_size,
                                .weight_bytes = work.ffn.weight_bytes / point.ep_size});
  }
  work.weight_bytes_per_rank.assign(ep_size, 6144 / point.ep_size);
  work.memory = {.weight_bytes = 6144, .activation_bytes = 1000};
  work.routing_checksum = 0xabcdef;
  return work;
}

inline PointRecordInput measured_input(const SweepPoint& point, double stage_s = 10e-6) {
  PointRecordInput input;
  input.point = point;
  input.state = PointState::measured;
  input.world_size = point.ep_size;
  input.layout = sample_layout(point.ep_size, point.ep_size);
  input.workload = sample_workload(point);
  input.gemms = FfnGemms{.gate_up = {{{8, 16, 20, 24, 1'000'000, nullptr}}},
                         .down = {{{8, 16, 16, 16, 500'000, nullptr}}}};
  input.check = CheckResult{CheckVerdict::passed, 0.001, 0.01, 8, "before and after timing"};
  input.timings =
      even_summary(even_times(point.ep_size, point.iterations, stage_s), kNumStages * stage_s);
  input.load = {.ranks = point.ep_size, .cores = 64, .foreign_load = 0.01};
  return input;
}

inline PointRecordInput skipped_input(const SweepPoint& point, const std::string& reason) {
  PointRecordInput input;
  input.point = point;
  input.state = PointState::skipped;
  input.reason = reason;
  input.world_size = 8;
  input.layout = sample_layout(8, point.ep_size);
  return input;
}

class ScratchDir {
 public:
  ScratchDir() {
    std::string name = (std::filesystem::temp_directory_path() / "epsweep_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp: " + name);
    path_ = name;
  }
  ~ScratchDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchDir(const ScratchDir&) = delete;
  ScratchDir& operator=(const ScratchDir&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace epsweep::testing
