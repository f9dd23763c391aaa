#include "cpu/router_op.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/error.h"
#include "cpu/cpu_backend.h"
#include "cpu/gate_product.h"
#include "cpu/row_kernels.h"

namespace epsweep {
namespace {

// fp32 rows of tokens that share one pass over the gate matrix and stay in a level-2 cache.
constexpr std::int64_t kBlockBytes = 1 << 20;
constexpr std::int64_t kMostTokens = 128;

// Tokens per block, a multiple of four: enough blocks for every thread.
std::int64_t block_tokens(const RouterOp& op, int num_threads) {
  const std::int64_t share = (op.num_tokens + num_threads - 1) / num_threads;
  const std::int64_t fit = kBlockBytes / (op.hidden_dim * std::int64_t{sizeof(float)});
  const std::int64_t block = std::min({share, fit, kMostTokens});
  return std::max<std::int64_t>(4, (block + 3) / 4 * 4);
}

std::size_t size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

void load_rows(const RouterOp& op, const Buffer& x, std::int64_t begin, std::int64_t count,
               float* rows) {
  if (op.dtype == DType::fp32) {
    std::memcpy(rows, x.as<float>().data() + begin * op.hidden_dim,
                size(count * op.hidden_dim) * sizeof(float));
  } else {
    widen_row(x.as<std::uint16_t>().data() + begin * op.hidden_dim, count * op.hidden_dim, rows);
  }
}

// Scores over all experts; topk_softmax ranks by logit and scores only the chosen ones.
void score_row(ScoreFunction score, std::span<float> values) {
  const auto count = static_cast<std::int64_t>(values.size());
  switch (score) {
    case ScoreFunction::softmax:
      return softmax_row(values.data(), count);
    case ScoreFunction::topk_softmax:
      return;
    case ScoreFunction::sigmoid:
      return sigmoid_row(values.data(), count);
    case ScoreFunction::sqrtsoftplus:
      return sqrtsoftplus_row(values.data(), count);
  }
}

void weigh(const RouterOp& op, std::span<const float> scores,
           std::span<const std::int32_t> prescribed, std::span<float> weights) {
  for (std::size_t j = 0; j < weights.size(); ++j) weights[j] = scores[size(prescribed[j])];
  if (op.score == ScoreFunction::topk_softmax) softmax_row(weights.data(), op.top_k);
  float factor = op.scale;
  if (op.renormalize) {
    float sum = 0;
    for (const float weight : weights) sum += weight;
    // Chosen scores that all underflow get weight 0 and not 0/0.
    factor /= std::max(sum, 1e-20F);
  }
  for (float& weight : weights) weight *= factor;
}

}  // namespace

void CpuRouter::reserve(int num_workers, std::int64_t block, const RouterOp& op) {
  scratch_.resize(std::max(scratch_.size(), size(num_workers)));
  for (Scratch& scratch : scratch_) {
    const auto grow = [](std::vector<float>& values, std::int64_t wanted) {
      if (values.size() < size(wanted)) values.resize(size(wanted));
    };
    const auto grow_aligned = [](Buffer& values, std::int64_t wanted) {
      const std::int64_t bytes = wanted * std::int64_t{sizeof(float)};
      if (values.bytes() < bytes) values = make_cpu_buffer(bytes);
    };
    grow_aligned(scratch.rows, block * op.hidden_dim);
    grow_aligned(scratch.sums, GateProduct{.tokens = block}.num_sums());
    grow(scratch.logits, block * op.num_experts);
    grow(scratch.biased, op.num_experts);
    scratch.groups.reserve(op.groups);
  }
}

void CpuRouter::choose(const RouterOp& op, std::span<const float> values, Scratch& scratch,
                       std::span<std::int32_t> chosen) {
  if (op.selection_bias != nullptr) {
    const std::span<const float> bias = op.selection_bias->as<float>();
    const auto biased = std::span(scratch.biased).first(values.size());
    std::transform(values.begin(), values.end(), bias.begin(), biased.begin(), std::plus<>());
    values = biased;
  }
  limited_top_k(values, op.groups, scratch.groups, chosen);
}

void CpuRouter::run(ThreadPool& pool, const RouterOp& op, const Buffer& x, const Buffer& gate,
                    std::span<const std::int32_t> prescribed, Buffer& own_choice, Buffer& weights) {
  EPS_EXPECT(op.num_experts % op.groups.num_groups == 0, "expert groups of unequal size");
  EPS_EXPECT(op.top_k <= op.num_experts / op.groups.num_groups * op.groups.topk_groups,
             "top_k exceeds the number of experts that may be chosen");
  const std::int64_t block = block_tokens(op, pool.num_threads());
  reserve(pool.num_threads(), block, op);
  const std::size_t top_k = size(op.top_k), experts = size(op.num_experts);
  pool.run((op.num_tokens + block - 1) / block, [&](std::int64_t item, int worker) {
    Scratch& scratch = scratch_[size(worker)];
    const std::int64_t begin = item * block, count = std::min(block, op.num_tokens - begin);
    float* const rows = scratch.rows.as<float>().data();
    load_rows(op, x, begin, count, rows);
    gate_product({.x = rows,
                  .gate = gate.as<float>().data(),
                  .tokens = count,
                  .experts = op.num_experts,
                  .hidden = op.hidden_dim},
                 scratch.sums.as<float>().data(), scratch.logits.data());
    for (std::int64_t t = 0; t < count; ++t) {
      const std::span<float> scores(scratch.logits.data() + t * op.num_experts, experts);
      const std::size_t at = size(begin + t) * top_k;
      const auto chosen = own_choice.as<std::int32_t>().subspan(at, top_k);
      if (op.select_by_logit) choose(op, scores, scratch, chosen);
      score_row(op.score, scores);
      if (!op.select_by_logit) choose(op, scores, scratch, chosen);
      weigh(op, scores, prescribed.subspan(at, top_k), weights.as<float>().subspan(at, top_k));
    }
  });
}

}  // namespace epsweep
