#include "report/calibration.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "costs/ffn_work.h"
#include "report/record_access.h"

namespace epsweep {
namespace {

constexpr double kSPerUs = 1e-6;
constexpr const char* kAnyKernel = "declared";  // what a simulation names where nothing is named

// A constant line grows by nothing: its rate is infinite, which JSON has no number for.
std::optional<double> finite(double value) {
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

// What is no number in a damaged record counts as none.
double as_number(const Json& value) {
  return value.is_number() ? value.get<double>() : 0;
}

double number(const Json& record, const std::string& path) {
  return find_number(record, path).value_or(0);
}

// 0 where there is none.
int ep_size_of(const Json& record) {
  constexpr double kMost = 1e6;
  const double ep_size = number(record, "point.ep_size");
  return ep_size >= 1 && ep_size <= kMost ? static_cast<int>(ep_size) : 0;
}

// The first axis in which a record is of another kind than the point: "dtype bf16"; empty for none.
std::string other_kind(const Json& record, const SweepPoint& point) {
  const Json wanted = sweep_point_json(point);
  for (const char* key :
       {"hidden_dim", "expert_io_dim", "ffn_dim", "num_experts", "top_k", "gemms_per_expert"}) {
    const std::string path = fmt::format("point.model.{}", key);
    const Json* found = find_value(record, path);
    if (found == nullptr || *found != wanted["model"][key]) {
      return "model " + find_text(record, "point.model.name");
    }
  }
  for (const char* key : {"dtype", "exchange_unit", "transport", "grouped_gemm"}) {
    const std::string found = find_text(record, fmt::format("point.{}", key));
    if (found != wanted[key] && wanted[key] != kAnyKernel) return fmt::format("{} {}", key, found);
  }
  return "";
}

// Of records with times, those of the point's kind.
std::vector<const Json*> records_of_kind(const RunData& run, const SweepPoint& point) {
  std::vector<const Json*> records;
  std::set<std::string> others;
  for (const Json& record : run.points) {
    const std::string state = find_text(record, "state");
    if ((state != "measured" && state != "simulated") || ep_size_of(record) == 0) continue;
    const std::string other = other_kind(record, point);
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
  throw ConfigError(fmt::format(
      "calibration {} has no point of model {}, dtype {}, exchange_unit {}, transport {} and "
      "grouped_gemm {}; its points are of {}",
      run.dir, point.model.name, plain_text(&wanted["dtype"]), plain_text(&wanted["exchange_unit"]),
      point.transport, point.grouped_gemm,
      join(std::vector<std::string>(others.begin(), others.end()))));
}

bool is_contiguous(const Json& record) {
  return find_text(record, "point.placement") == "contiguous" &&
         number(record, "point.redundant_slots") == 0 &&
         find_text(record, "point.mapping") == "packed";
}

std::optional<FfnSample> ffn_sample(const Json& record) {
  const Json* layers = find_value(record, "rows_per_expert.per_layer");
  const Json* times = find_value(record, "ffn_p50_us_of_rank");
  if (!is_contiguous(record) || layers == nullptr || times == nullptr || times->empty()) {
    return std::nullopt;
  }
  double active = 0, rows = 0, us = 0;
  for (const Json& layer : *layers) {
    for (const Json& of_expert : layer) {
      const auto count = as_number(of_expert);
      active += count > 0 ? 1 : 0;
      rows += count;
    }
  }
  for (const Json& of_rank : *times) us += as_number(of_rank);
  const double ranks = number(record, "point.ep_size") * static_cast<double>(layers->size());
  if (!(active > 0)) return std::nullopt;
  return FfnSample{.slots = std::max<std::int64_t>(1, std::llround(active / ranks)),
                   .rows_per_slot = rows / active,
                   .seconds = us * kSPerUs / static_cast<double>(times->size())};
}

// Bytes of one exchange of the busiest rank; metadata as if spread evenly.
ExchangeDemand demand_of(const Json& record, const std::string& stage) {
  const bool by_rank = find_text(record, "point.exchange_unit") == "rank";
  const std::string bytes = "bytes." + stage + ".", letter = by_rank ? "b" : "a";
  const std::string what = by_rank ? "max_d_copies" : "max_remote_rows";
  const double ranks = number(record, "point.ep_size");
  const double copies =
      std::max(number(record, bytes + what + "_sent"), number(record, bytes + what + "_received"));
  const double metadata = number(record, bytes + "metadata_bytes") /
                          std::max(1.0, number(record, "point.layers")) * (ranks - 1) /
                          (ranks * ranks);
  const double busiest = copies * number(record, bytes + "row_bytes") + metadata;
  const double remote = number(record, bytes + letter + "_remote_copies");
  const double leaving = number(record, bytes + letter + "_inter_copies");
  const double share = remote > 0 ? leaving / remote : 0;
  const bool leaves = number(record, "bytes.num_domains") > 1;
  return {.ep_size = ep_size_of(record),
          .reach = leaves ? Reach::across_domains : Reach::within_domain,
          .bytes = {.intra = busiest * (1 - share), .inter = busiest * share}};
}

std::optional<double> transfer_s(const Json& record, const std::string& stage) {
  auto us = find_number(record, "stages." + stage + ".exchange.transfer_us.p50");
  if (us) *us *= kSPerUs;
  return us;
}

double most_tokens(const Json& record) {
  const Json* tokens = find_value(record, "tokens_per_rank");
  double most = 0;
  if (tokens == nullptr) return most;
  for (const Json& of_rank : *tokens) most = std::max(most, as_number(of_rank));
  return most;
}

ExchangeModel exchange_model(const std::vector<const Json*>& records, const std::string& stage) {
  std::vector<ExchangeObservation> observations;
  for (const Json* record : records) {
    if (number(*record, "point.ep_size") < 2) continue;
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
    if (is_exchange && number(*record, "point.ep_size") > 1) continue;
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

}  // namespace

StageCosts calibrated_costs(const RunData& run, const SweepPoint& point) {
  const std::vector<const Json*> records = records_of_kind(run, point);
  StageCosts costs;
  std::vector<FfnSample> samples;
  for (const Json* record : records) {
    if (const auto sample = ffn_sample(*record)) samples.push_back(*sample);
  }
  costs.ffn = FfnTable(samples, floor_of(run, point));
  if (costs.ffn.empty()) {
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

void check_hardware(const RunData& run, const std::string& hardware) {
  if (hardware.empty()) return;
  const std::string calibrated = find_text(run.run, "experiment.hardware.name");
  if (calibrated == hardware) return;
  throw ConfigError(
      fmt::format("the experiment is about hardware {}, calibration {} about {} (it ran on '{}')",
                  hardware, run.dir, calibrated.empty() ? "none that it names" : calibrated,
                  find_text(run.run, "provenance.device")));
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

Json calibration_json(const RunData& run) {
  std::set<int> ep_sizes;
  std::int64_t crowded = 0;
  for (const Json& record : run.points) {
    if (!has_row(record)) continue;
    ep_sizes.insert(ep_size_of(record));
    const Json* oversubscribed = find_value(record, "load.oversubscribed");
    crowded += oversubscribed != nullptr && *oversubscribed == true ? 1 : 0;
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
          {"ep_sizes", ep_sizes},
          {"oversubscribed_points", crowded}};
}

}  // namespace epsweep
