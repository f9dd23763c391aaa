#include "report/calibration.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "costs/ffn_work.h"
#include "report/calibration_records.h"
#include "report/record_access.h"

namespace epsweep {
namespace {

constexpr double kSPerUs = 1e-6;
constexpr const char* kAnyKernel = "declared";  // what a simulation names where nothing is named

// A constant line grows by nothing: its rate is infinite, which JSON has no number for.
std::optional<double> finite(double value) {
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

// The first axis in which a record is of another kind than the point: "dtype bf16"; empty for none.
using Keys = std::vector<std::string>;
const Keys kLayerWidths = {"hidden_dim",  "expert_io_dim", "ffn_dim",
                           "num_experts", "top_k",         "gemms_per_expert"};
const Keys kExpertWidths = {"expert_io_dim", "ffn_dim", "gemms_per_expert"};

std::string other_kind(const Json& record, const SweepPoint& point, const Keys& widths,
                       const Keys& axes) {
  const Json wanted = sweep_point_json(point);
  for (const std::string& key : widths) {
    const std::string path = fmt::format("point.model.{}", key);
    const Json* found = find_value(record, path);
    if (found == nullptr || *found != wanted["model"][key]) {
      return "model " + find_text(record, "point.model.name");
    }
  }
  for (const std::string& key : axes) {
    const std::string found = find_text(record, fmt::format("point.{}", key));
    if (found != wanted[key] && wanted[key] != kAnyKernel) return fmt::format("{} {}", key, found);
  }
  return "";
}

// Of records with times, those of the point's kind.
std::vector<const Json*> records_of_kind(const RunData& run, const SweepPoint& point,
                                         FfnFrom ffn_from) {
  Keys axes = {"dtype", "exchange_unit", "transport"};
  if (ffn_from == FfnFrom::calibration) axes.push_back("grouped_gemm");
  std::vector<const Json*> records;
  std::set<std::string> others;
  for (const Json& record : run.points) {
    const std::string state = find_text(record, "state");
    if ((state != "measured" && state != "simulated") || ep_size_of(record) == 0) continue;
    const std::string other = other_kind(record, point, kLayerWidths, axes);
    if (other.empty()) {
      records.push_back(&record);
    } else {
      others.insert(other);
    }
  }
  if (!records.empty()) return records;
  if (others.empty()) {
    throw ConfigError(fmt::format("calibration {}: no point of it has times", run.dir));
  }
  const Json wanted = sweep_point_json(point);
  std::vector<std::string> asked = {"model " + point.model.name};
  for (const std::string& axis : axes) asked.push_back(axis + " " + plain_text(&wanted[axis]));
  const std::string last = asked.back();
  asked.pop_back();
  throw ConfigError(fmt::format("calibration {} has no point of {} and {}; its points are of {}",
                                run.dir, join(asked), last,
                                join(std::vector<std::string>(others.begin(), others.end()))));
}

// Those whose experts are the point's, however many.
std::vector<const Json*> records_of_ffn(const RunData& run, const SweepPoint& point) {
  std::vector<const Json*> records;
  for (const Json& record : run.points) {
    if (!has_row(record) || is_predicted(record) || ep_size_of(record) == 0) continue;
    if (!other_kind(record, point, kExpertWidths, {"dtype", "grouped_gemm"}).empty()) continue;
    records.push_back(&record);
  }
  if (!records.empty()) return records;
  throw ConfigError(fmt::format(
      "FFN calibration {} has no point with experts of {} x {}, the same dtype and grouped_gemm {}",
      run.dir, point.model.expert_io_dim, point.model.ffn_dim, point.grouped_gemm));
}

ExchangeModel exchange_model(const std::vector<const Json*>& records, const std::string& stage) {
  std::vector<ExchangeObservation> observations;
  for (const Json* record : records) {
    if (ep_size_of(*record) < 2) continue;
    if (const auto seconds = transfer_s(*record, stage)) {
      observations.push_back({demand_of(*record, stage), *seconds});
    }
  }
  return fit_exchange_model(observations);
}

// Exchanges at EP1 are a rank with itself.
std::optional<StageLine> line_by_tokens(const std::vector<const Json*>& records, Stage stage) {
  const bool is_exchange =
      stage == Stage::count_exchange || stage == Stage::dispatch || stage == Stage::combine;
  const std::string name(to_string(stage));
  std::vector<ExchangeSample> samples;
  for (const Json* record : records) {
    if (is_exchange && ep_size_of(*record) > 1) continue;
    auto us = find_number(*record, "stages." + name + ".slowest_us.p50");
    if (us && *us > 0) {
      samples.push_back({.remote_bytes = most_tokens(*record), .seconds = *us * kSPerUs});
    }
  }
  return fit_stage(samples);
}

void put_counts(const std::vector<const Json*>& records, StageCosts& costs) {
  std::vector<ExchangeSample> samples;
  for (const Json* record : records) {
    const int ep_size = ep_size_of(*record);
    const auto seconds = transfer_s(*record, "count_exchange");
    if (ep_size < 2 || !seconds || !(*seconds > 0)) continue;
    samples.push_back({.remote_bytes = ep_size - 1.0, .seconds = *seconds});
    costs.narrowest_count =
        costs.widest_count == 0 ? ep_size : std::min(costs.narrowest_count, ep_size);
    costs.widest_count = std::max(costs.widest_count, ep_size);
  }
  costs.count_by_peers = fit_stage(samples);
}

struct FloorRates {
  std::optional<double> flops, bytes;  // by second
};

// Best that the named source saw, else the vendor's peak.
FloorRates hardware_rates(const SweepPoint& point) {
  if (!point.hardware) return {};
  const bool is_fp8 = point.dtype == DType::fp8 || point.dtype == DType::fp8_block128;
  const auto best = [&point](std::optional<double> HardwareRates::*rate) {
    auto value = point.hardware->measured.*rate;
    if (!value) value = point.hardware->peak.*rate;
    if (value) *value *= 1e12;
    return value;
  };
  return {.flops = best(is_fp8 ? &HardwareRates::fp8_tflops : &HardwareRates::bf16_tflops),
          .bytes = best(&HardwareRates::memory_tb_per_s)};
}

// Of the slowest rank of any set of ranks that measured.
FloorRates ceiling_rates(const RunData& run, const SweepPoint& point) {
  FloorRates slowest;
  auto& [flops, bytes] = slowest;
  const Json* sets = find_value(run.run, "ceilings.rates");
  if (sets == nullptr || !sets->is_array()) return {};
  const Json wanted = sweep_point_json(point);
  const std::string gemm = "gemm." + plain_text(&wanted["dtype"]) + ".slowest_flop_per_s";
  for (const Json& set : *sets) {
    if (const auto rate = find_number(set, gemm)) flops = std::min(flops.value_or(*rate), *rate);
    if (const auto rate = find_number(set, "slowest_read_bytes_per_s")) {
      bytes = std::min(bytes.value_or(*rate), *rate);
    }
  }
  return slowest;
}

FfnFloor floor_of(const RunData& run, const SweepPoint& point) {
  FloorRates rates = ceiling_rates(run, point);
  if (!rates.flops || !rates.bytes) rates = hardware_rates(point);
  const auto& [flops, bytes] = rates;
  if (!flops || !bytes) return {};
  const FfnWork one_row = ffn_work(point.model, point.dtype, {1});
  return {
      .row_s = static_cast<double>(one_row.flops) / *flops,
      .slot_s = static_cast<double>(one_row.weight_bytes + one_row.weight_scale_bytes) / *bytes};
}

// Points that ran with more ranks than cores.
std::int64_t num_oversubscribed(const RunData& run) {
  return std::ranges::count_if(run.points, [](const Json& record) {
    const Json* oversubscribed = find_value(record, "load.oversubscribed");
    return has_row(record) && oversubscribed != nullptr && *oversubscribed == true;
  });
}

}  // namespace

StageCosts calibrated_costs(const Calibration& calibration, const SweepPoint& point) {
  const RunData& run = calibration.run;
  const FfnFrom ffn_from = calibration.ffn_from;
  const std::vector<const Json*> records = records_of_kind(run, point, ffn_from);
  StageCosts costs;
  std::vector<FfnSample> samples;
  const auto add_samples = [&samples](const std::vector<const Json*>& measured) {
    for (const Json* record : measured) {
      if (const auto sample = ffn_sample(*record)) samples.push_back(*sample);
    }
  };
  // The other run's first: of equal samples the table keeps the first, and those are for the FFN.
  if (calibration.ffn) add_samples(records_of_ffn(*calibration.ffn, point));
  add_samples(records);
  costs.ffn = FfnTable(samples, floor_of(run, point));
  if (costs.ffn.empty() && ffn_from == FfnFrom::calibration) {
    throw ConfigError(fmt::format(
        "calibration {}: no point with contiguous experts and packed groups tells what a rank's "
        "expert FFN takes",
        run.dir));
  }
  costs.dispatch = exchange_model(records, "dispatch");
  costs.combine = exchange_model(records, "combine");
  put_counts(records, costs);
  for (std::size_t s = 0; s < kNumStages; ++s) {
    if (static_cast<Stage>(s) == Stage::expert_ffn) continue;
    costs.by_tokens[s] = line_by_tokens(records, static_cast<Stage>(s));
  }
  if (point.ep_size == 1 && !costs.by_tokens[static_cast<std::size_t>(Stage::dispatch)]) {
    throw ConfigError(fmt::format(
        "calibration {} has no EP1: what a rank's exchange with itself takes is not known",
        run.dir));
  }
  return costs;
}

void check_hardware(const Calibration& calibration, const std::string& hardware) {
  const RunData& run = calibration.run;
  // A rank that has more of its machine computes faster: its share is part of what it ran on.
  const auto device_of = [](const RunData& of) {
    const Json* threads = find_value(of.run, "threads_per_rank");
    std::string device = find_text(of.run, "provenance.device");
    if (num_oversubscribed(of) > 0) device += ", more ranks than cores";
    return threads == nullptr ? device
                              : fmt::format("{}, {} threads a rank", device, plain_text(threads));
  };
  if (calibration.ffn && device_of(*calibration.ffn) != device_of(run)) {
    throw ConfigError(fmt::format("calibration {} ran on '{}', FFN calibration {} on '{}'", run.dir,
                                  device_of(run), calibration.ffn->dir,
                                  device_of(*calibration.ffn)));
  }
  if (hardware.empty()) return;
  const std::string calibrated = find_text(run.run, "experiment.hardware.name");
  if (calibrated == hardware) return;
  throw ConfigError(fmt::format(
      "the experiment is about hardware {}, calibration {} about {} (it ran on '{}')", hardware,
      run.dir, calibrated.empty() ? "none that it names" : calibrated, device_of(run)));
}

void check_device(const Calibration& calibration, const std::string& device, int threads_per_rank) {
  const RunData& run = calibration.run;
  if (find_value(run.run, "simulated") != nullptr) return;
  const std::string calibrated = find_text(run.run, "provenance.device");
  const auto threads = find_number(run.run, "threads_per_rank");
  if (calibrated == device && threads == threads_per_rank) return;
  throw ConfigError(fmt::format(
      "calibration {} ran on '{}', {} threads a rank; compute would be measured on '{}', {} "
      "threads "
      "a rank: start as many ranks on as many cores",
      run.dir, calibrated, plain_text(find_value(run.run, "threads_per_rank")), device,
      threads_per_rank));
}

Json stage_costs_json(const StageCosts& costs) {
  const auto line_json = [](const auto& line) -> Json {
    if (!line) return nullptr;
    return {{"fixed_s", line->alpha_s},
            {"units_per_s", json_or_null(finite(line->beta_bytes_per_s))}};
  };
  const auto fabric_json = [](const std::optional<FabricLine>& fabric) -> Json {
    if (!fabric) return nullptr;
    return {{"alpha_s", fabric->line.alpha_s},
            {"beta_bytes_per_s", fabric->line.beta_bytes_per_s},
            {"ep_sizes", {fabric->narrowest, fabric->widest}}};
  };
  Json json = {{"expert_ffn", {{"fixed_s", costs.ffn.fixed_s()}}},
               {"count_exchange_by_peers", line_json(costs.count_by_peers)},
               {"by_tokens_of_a_rank", Json::object()}};
  const std::pair<const char*, const ExchangeModel*> models[] = {{"dispatch", &costs.dispatch},
                                                                 {"combine", &costs.combine}};
  for (const auto& [name, model] : models) {
    json[name] = {{"within_domain", fabric_json(model->within)},
                  {"across_domains", fabric_json(model->across)}};
  }
  for (std::size_t s = 0; s < kNumStages; ++s) {
    if (!costs.by_tokens[s]) continue;
    json["by_tokens_of_a_rank"][std::string(to_string(static_cast<Stage>(s)))] =
        line_json(costs.by_tokens[s]);
  }
  return json;
}

Json calibration_json(const Calibration& calibration) {
  const RunData& run = calibration.run;
  std::set<int> ep_sizes;
  for (const Json& record : run.points) {
    if (!has_row(record)) continue;
    ep_sizes.insert(ep_size_of(record));
  }
  const auto text = [&run](const char* path) {
    const Json* value = find_value(run.run, path);
    return value == nullptr ? Json(nullptr) : *value;
  };
  return {{"dir", run.dir},
          {"identity", text("identity")},
          {"backend", text("backend")},
          {"device", text("provenance.device")},
          {"plan_checksum", text("plan_checksum")},
          {"ffn_dir", calibration.ffn ? Json(calibration.ffn->dir) : Json(nullptr)},
          {"ep_sizes", ep_sizes},
          {"oversubscribed_points", num_oversubscribed(run)}};
}

}  // namespace epsweep
