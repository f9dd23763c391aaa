#include "costs/serving_memory.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "costs/memory.h"
#include "plan/weight_format.h"

namespace epsweep {
namespace {

constexpr std::int64_t kBf16Bytes = 2;

// Tokens of one step: of the rank with most, and of the group.
struct StepTokens {
  std::int64_t of_rank = 0, of_group = 0;
};

StepTokens step_tokens(const SweepPoint& point) {
  StepTokens tokens{.of_rank = 0, .of_group = point.tokens_global()};
  for (const TokenRange& range : token_ranges(point)) {
    tokens.of_rank = std::max(tokens.of_rank, range.size());
  }
  return tokens;
}

// Slots are dealt to ranks in near-equal shares, larger ones first.
std::int64_t most_slots(const SweepPoint& point) {
  return near_equal_split(point.model.num_experts + point.redundant_slots, point.ep_size).front();
}

std::int64_t worst_rows(const SweepPoint& point, std::int64_t tokens_of_group) {
  return tokens_of_group * std::min<std::int64_t>(point.model.top_k, most_slots(point));
}

std::int64_t exchange_bytes(const ModelShape& model, std::int64_t tokens_of_rank,
                            std::int64_t recv_rows) {
  return 2 * (tokens_of_rank * model.top_k + recv_rows) * model.expert_io_dim * kBf16Bytes;
}

std::int64_t activation_bytes(const ModelShape& model, std::int64_t tokens_of_rank,
                              std::int64_t recv_rows) {
  return tokens_of_rank * model.hidden_dim * (2 * kBf16Bytes + bytes_of(DType::fp32)) +
         recv_rows * (model.gate_up_cols() + model.ffn_dim) * kBf16Bytes;
}

// Everything that grows with the step.
std::int64_t buffer_bytes(const SweepPoint& point, const StepTokens& tokens) {
  const std::int64_t rows = worst_rows(point, tokens.of_group);
  return exchange_bytes(point.model, tokens.of_rank, rows) +
         activation_bytes(point.model, tokens.of_rank, rows);
}

std::string weight_dtype_of(const SweepPoint& point) {
  const std::string& asked = point.serving->weight_dtype;
  return asked == kAsPublished ? point.model.weight_dtype : asked;
}

std::int64_t non_expert_bytes(const SweepPoint& point, const WeightFormat& of_experts) {
  const std::string& asked = point.serving->non_expert_weight_dtype;
  const bool experts_only = of_experts.covers == WeightFormat::Covers::experts_only;
  const std::string name = asked != kAsPublished ? asked : experts_only ? "bf16" : of_experts.name;
  const ModelShape& model = point.model;
  return bytes_of_weights(*model.total_params - model.all_expert_params(),
                          *find_weight_format(name));
}

// Buffers are proportional to the sequences of a rank, so one division finds the most that fit.
void find_largest_load(const SweepPoint& point, std::int64_t room_without_buffers,
                       ServingMemory& memory) {
  const std::int64_t tokens = point.serving->tokens_per_sequence();
  const std::int64_t bytes_of_one =
      *memory.kv_bytes_per_sequence +
      buffer_bytes(point, {.of_rank = tokens, .of_group = tokens * point.ep_size});
  const std::int64_t most =
      bytes_of_one > 0 ? std::max<std::int64_t>(room_without_buffers, 0) / bytes_of_one : 0;
  memory.max_sequences_per_rank = most;
  memory.max_sequences_per_group = most * point.ep_size;
  memory.max_tokens_per_step = most * point.ep_size * tokens;
  memory.max_rows_per_expert = static_cast<double>(*memory.max_tokens_per_step) *
                               point.model.top_k / point.model.num_experts;
}

void find_kv_room(const SweepPoint& point, const StepTokens& tokens, ServingMemory& memory) {
  const std::int64_t without_buffers = memory.usable_bytes - memory.reserve_bytes -
                                       memory.expert_weight_bytes - *memory.non_expert_weight_bytes;
  memory.kv_room_bytes = without_buffers - buffer_bytes(point, tokens);
  if (!memory.kv.unknown.empty()) {
    memory.unknown = memory.kv.unknown;
    return;
  }
  memory.kv_shortfall_bytes = std::max<std::int64_t>(
      capped_product(memory.sequences_per_rank, *memory.kv_bytes_per_sequence) -
          *memory.kv_room_bytes,
      0);
  find_largest_load(point, without_buffers, memory);
}

}  // namespace

std::int64_t serving_expert_bytes(const ModelShape& model, std::int64_t slots,
                                  const std::string& weight_dtype) {
  const std::optional<WeightFormat> format = find_weight_format(weight_dtype);
  EPS_EXPECT(format.has_value(), "weights in a format without a size");
  return bytes_of_weights(slots * model.expert_params() * model.num_moe_layers, *format);
}

std::optional<ServingMemory> serving_memory(const SweepPoint& point) {
  if (!point.serving.has_value()) return std::nullopt;
  EPS_EXPECT(point.hardware && point.hardware->memory_bytes, "serving without a memory");
  const Serving& serving = *point.serving;
  const StepTokens tokens = step_tokens(point);
  ServingMemory memory;
  memory.memory_bytes = *point.hardware->memory_bytes;
  memory.usable_bytes = static_cast<std::int64_t>(
      std::floor(static_cast<double>(memory.memory_bytes) * serving.memory_fraction));
  memory.reserve_bytes = serving.reserve_bytes;
  memory.mean_recv_rows = static_cast<double>(tokens.of_group) * point.model.top_k / point.ep_size;
  memory.worst_recv_rows = worst_rows(point, tokens.of_group);
  memory.exchange_bytes_mean =
      exchange_bytes(point.model, tokens.of_rank, std::llround(std::ceil(memory.mean_recv_rows)));
  memory.exchange_bytes_worst = exchange_bytes(point.model, tokens.of_rank, memory.worst_recv_rows);
  memory.activation_bytes = activation_bytes(point.model, tokens.of_rank, memory.worst_recv_rows);
  memory.kv = kv_cost(point.model.attention, serving.kv_dtype);
  if (memory.kv.unknown.empty()) {
    memory.kv_bytes_per_sequence = kv_bytes_of_sequence(memory.kv, serving.context_tokens);
  }
  const std::int64_t step = serving.tokens_per_sequence();
  memory.sequences_per_rank = (tokens.of_rank + step - 1) / step;

  const std::string dtype = weight_dtype_of(point);
  const std::optional<WeightFormat> format = find_weight_format(dtype);
  if (!format.has_value()) {
    memory.unknown = fmt::format(
        "{} is published in weight_dtype '{}', whose size is not known; "
        "name one in serving.weight_dtype",
        point.model.name, dtype);
    return memory;
  }
  memory.expert_weight_bytes = serving_expert_bytes(point.model, most_slots(point), dtype);
  if (!point.model.total_params.has_value()) {
    memory.unknown = fmt::format(
        "the model file of {} states no total_params, so the non-expert "
        "weights are not known",
        point.model.name);
    return memory;
  }
  memory.non_expert_weight_bytes = non_expert_bytes(point, *format);
  find_kv_room(point, tokens, memory);
  return memory;
}

std::int64_t pooled_sequences(std::int64_t ep_size, std::int64_t pool_bytes,
                              std::int64_t bytes_of_sequence) {
  return ep_size * std::max<std::int64_t>(pool_bytes, 0) / bytes_of_sequence;
}

std::optional<LadderStop> kv_stop(const SweepPoint& point) {
  const std::optional<ServingMemory> memory = serving_memory(point);
  if (!memory || memory->kv_shortfall_bytes.value_or(0) == 0) return std::nullopt;
  const std::int64_t room = *memory->kv_room_bytes;
  const std::string left =
      room < 0
          ? fmt::format("weights and buffers alone exceed {} of {} by {}",
                        size_text(memory->usable_bytes), point.hardware->name, size_text(-room))
          : fmt::format("{} of {} leave {}", size_text(memory->usable_bytes), point.hardware->name,
                        size_text(room));
  return LadderStop{
      .kind = StopKind::kv_memory,
      .at_tokens = point.tokens_global(),
      .reason = fmt::format(
          "{} sequences per rank of {} tokens need {} of KV, {}: {} short; {} fit",
          memory->sequences_per_rank, point.serving->context_tokens,
          size_text(capped_product(memory->sequences_per_rank, *memory->kv_bytes_per_sequence)),
          left, size_text(*memory->kv_shortfall_bytes), *memory->max_sequences_per_rank)};
}

}  // namespace epsweep
