#include "cpu/router_op.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/error.h"
#include "cpu/row_kernels.h"

namespace epsweep {
namespace {

// Tokens that share one pass over the gate matrix: 32 rows of fp32 stay in a level-2 cache.
constexpr std::int64_t kBlockTokens = 32;

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

// logits[count][num_experts] = rows[count][hidden_dim] * gate[num_experts][hidden_dim]^T. Edges go
// element by element.
void gate_gemm(const RouterOp& op, const float* rows, const float* gate, std::int64_t count,
               float* logits) {
  const std::int64_t experts = op.num_experts, hidden = op.hidden_dim;
  for (std::int64_t e = 0; e < experts; e += 4) {
    for (std::int64_t t = 0; t < count; t += 4) {
      if (e + 4 <= experts && t + 4 <= count) {
        float block[16];
        gate_block_4x4(rows + t * hidden, gate + e * hidden, hidden, block);
        for (std::int64_t i = 0; i < 4; ++i) {
          std::memcpy(logits + (t + i) * experts + e, block + 4 * i, 4 * sizeof(float));
        }
        continue;
      }
      for (std::int64_t i = t; i < std::min(t + 4, count); ++i) {
        for (std::int64_t j = e; j < std::min(e + 4, experts); ++j) {
          logits[i * experts + j] = gate_dot(rows + i * hidden, gate + j * hidden, hidden);
        }
      }
    }
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

void CpuRouter::reserve(int num_workers, const RouterOp& op) {
  scratch_.resize(std::max(scratch_.size(), size(num_workers)));
  for (Scratch& scratch : scratch_) {
    const auto grow = [](std::vector<float>& values, std::int64_t wanted) {
      if (values.size() < size(wanted)) values.resize(size(wanted));
    };
    grow(scratch.rows, kBlockTokens * op.hidden_dim);
    grow(scratch.logits, kBlockTokens * op.num_experts);
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
  reserve(pool.num_threads(), op);
  // Enough blocks for every thread, in steps of the 4-row kernel.
  const std::int64_t share = (op.num_tokens + pool.num_threads() - 1) / pool.num_threads();
  const std::int64_t block = std::clamp<std::int64_t>((share + 3) / 4 * 4, 4, kBlockTokens);
  const std::size_t top_k = size(op.top_k), experts = size(op.num_experts);
  pool.run((op.num_tokens + block - 1) / block, [&](std::int64_t item, int worker) {
    Scratch& scratch = scratch_[size(worker)];
    const std::int64_t begin = item * block, count = std::min(block, op.num_tokens - begin);
    load_rows(op, x, begin, count, scratch.rows.data());
    gate_gemm(op, scratch.rows.data(), gate.as<float>().data(), count, scratch.logits.data());
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
