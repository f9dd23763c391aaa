#include "pipeline/oracle.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "base/bfloat16.h"
#include "base/error.h"
#include "pipeline/quantised.h"
#include "workload/dot.h"
#include "workload/gate.h"
#include "workload/payload.h"

namespace epsweep {
namespace {

// The value as the layer stores it in a row.
float stored(double value, DType dtype) {
  const auto single = static_cast<float>(value);
  return row_dtype(dtype) == DType::bf16 ? float_of_bf16(bf16_of_float(single)) : single;
}

// As the first product reads it.
std::vector<float> token_row(const SweepPoint& point, std::int64_t token, std::int64_t cols) {
  std::vector<float> row(static_cast<std::size_t>(cols));
  token_matrix(point.seed, point.model.hidden_dim, point.step).fill_row(token, std::span(row));
  quantise_inputs(point.dtype, row);
  return row;
}

// One token's use of one expert.
struct Use {
  std::size_t token;  // position in the list of tokens
  std::size_t sum;    // position in the list of sums it is added to
  double weight;
  // gate_up, then the activation, as stored, then as the second product reads it
  std::vector<float> inner;
};

void activate(const ModelShape& model, DType dtype, std::vector<float>& inner) {
  const auto ffn = static_cast<std::size_t>(model.ffn_dim);
  for (std::size_t i = 0; i < ffn; ++i) {
    const double first = static_cast<double>(inner[i]);
    if (model.gemms_per_expert == 3) {
      inner[i] =
          stored(first / (1 + std::exp(-first)) * static_cast<double>(inner[ffn + i]), dtype);
    } else {
      const double positive = std::max(first, 0.0);
      inner[i] = stored(positive * positive, dtype);
    }
  }
}

// Adds weight * expert(token) to the sums of all tokens that use the expert. Every weight row is
// generated once and used for all of them.
void add_expert(const SweepPoint& point, int layer, int expert, std::vector<Use>& uses,
                const std::vector<std::vector<float>>& inputs, std::vector<double>& sums) {
  const ModelShape& model = point.model;
  const auto io = static_cast<std::size_t>(model.expert_io_dim);
  const auto ffn = static_cast<std::size_t>(model.ffn_dim);
  WeightRows first(point.dtype, gate_up_matrix(point.seed, layer, expert, model.expert_io_dim),
                   model.gate_up_cols());
  for (std::int64_t col = 0; col < model.gate_up_cols(); ++col) {
    const std::span<const float> weights = first.next();
    for (Use& use : uses) {
      use.inner.push_back(stored(dot(weights.data(), inputs[use.token].data(), io), point.dtype));
    }
  }
  for (Use& use : uses) {
    activate(model, point.dtype, use.inner);
    quantise_inputs(point.dtype, std::span(use.inner).first(ffn));
  }
  WeightRows second(point.dtype, down_matrix(point.seed, layer, expert, model.ffn_dim),
                    model.expert_io_dim);
  for (std::size_t col = 0; col < io; ++col) {
    const std::span<const float> weights = second.next();
    for (const Use& use : uses) {
      const float value = stored(dot(weights.data(), use.inner.data(), ffn), point.dtype);
      sums[use.sum * io + col] += use.weight * static_cast<double>(value);
    }
  }
}

// What is added up before it is stored: a token's row with exchange unit `assignment`, and its
// partial sum at every destination rank with `rank`.
class Sums {
 public:
  Sums(const SweepPoint& point, const Placement& placement)
      : unit_(point.exchange_unit), placement_(placement) {}

  // Of tokens in ascending position.
  std::size_t of(std::size_t position, std::int64_t token, std::int32_t expert) {
    const int rank = unit_ == ExchangeUnit::rank ? placement_.rank_of(expert, token) : 0;
    const auto begin =
        token_of_.empty() || token_of_.back() != position ? token_of_.size() : begin_;
    begin_ = begin;
    for (std::size_t sum = begin; sum < token_of_.size(); ++sum) {
      if (rank_of_[sum] == rank) return sum;
    }
    token_of_.push_back(position);
    rank_of_.push_back(rank);
    return token_of_.size() - 1;
  }
  std::size_t size() const { return token_of_.size(); }

  // The tokens' rows from the sums; partial sums are stored on their way.
  std::vector<double> rows(const std::vector<double>& sums, std::size_t num_tokens, std::size_t io,
                           DType dtype) const {
    std::vector<double> rows(num_tokens * io);
    for (std::size_t sum = 0; sum < size(); ++sum) {
      for (std::size_t col = 0; col < io; ++col) {
        const double value = sums[sum * io + col];
        rows[token_of_[sum] * io + col] +=
            unit_ == ExchangeUnit::rank ? static_cast<double>(stored(value, dtype)) : value;
      }
    }
    return rows;
  }

 private:
  ExchangeUnit unit_;
  const Placement& placement_;
  std::size_t begin_ = 0;  // first sum of the current token
  std::vector<std::size_t> token_of_;
  std::vector<int> rank_of_;
};

double rms(std::span<const double> row) {
  const double squares = std::inner_product(row.begin(), row.end(), row.begin(), 0.0);
  return std::sqrt(squares / static_cast<double>(row.size()));
}

}  // namespace

std::vector<double> expected_router_weights(const SweepPoint& point, int layer, const Trace& trace,
                                            std::int64_t token) {
  const LayerGate gate(point.seed, layer, point.model, point.step);
  return gate.router().weights(gate.logits(token), trace.of_token(token));
}

std::vector<double> expected_rows(const SweepPoint& point, int layer, const Trace& trace,
                                  const Placement& placement,
                                  std::span<const std::int64_t> tokens) {
  const auto io = static_cast<std::size_t>(point.model.expert_io_dim);
  std::vector<std::vector<float>> inputs;
  std::map<std::int32_t, std::vector<Use>> uses_of_expert;
  const LayerGate gate(point.seed, layer, point.model, point.step);
  Sums sum_of(point, placement);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    inputs.push_back(token_row(point, tokens[i], point.model.expert_io_dim));
    const auto experts = trace.of_token(tokens[i]);
    const std::vector<double> weights = gate.router().weights(gate.logits(tokens[i]), experts);
    for (std::size_t j = 0; j < experts.size(); ++j) {
      uses_of_expert[experts[j]].push_back({.token = i,
                                            .sum = sum_of.of(i, tokens[i], experts[j]),
                                            .weight = weights[j],
                                            .inner = {}});
    }
  }
  std::vector<double> sums(sum_of.size() * io);
  for (auto& [expert, uses] : uses_of_expert) {
    add_expert(point, layer, expert, uses, inputs, sums);
  }
  return sum_of.rows(sums, tokens.size(), io, point.dtype);
}

void OracleResult::merge(const OracleResult& other) {
  num_tokens_checked += other.num_tokens_checked;
  num_tokens_scanned += other.num_tokens_scanned;
  worst_error = std::max(worst_error, other.worst_error);
  if (!problem) problem = other.problem;
  if (!unfinished) unfinished = other.unfinished;
}

OracleResult Oracle::check(int routing, std::span<const float> out) {
  const auto at = static_cast<std::size_t>(routing);
  const int layer = work_.point.layer_of(routing);
  const TokenRange own = work_.own_tokens();
  const auto io = static_cast<std::size_t>(work_.point.model.expert_io_dim);
  const std::vector<std::int64_t>& tokens = work_.check_tokens[at];
  EPS_EXPECT(out.size() == static_cast<std::size_t>(own.size()) * io, "output of the wrong size");
  if (expected_[at].empty()) {
    expected_[at] = expected_rows(at_step_of(work_.point, routing), layer, work_.traces[at],
                                  work_.placements[at], tokens);
  }
  OracleResult result;
  result.num_tokens_scanned = own.size();
  const auto bad = std::ranges::find_if(out, [](float value) { return !std::isfinite(value); });
  if (bad != out.end()) {
    result.problem =
        fmt::format("layer {} token {}: a value was never written or is not finite", layer,
                    own.begin + (bad - out.begin()) / static_cast<std::ptrdiff_t>(io));
    return result;
  }
  const double tolerance = Oracle::tolerance(work_.point.dtype);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto want = std::span(expected_[at]).subspan(i * io, io);
    const auto got = out.subspan(static_cast<std::size_t>(tokens[i] - own.begin) * io, io);
    double largest = 0;
    for (std::size_t col = 0; col < io; ++col) {
      largest = std::max(largest, std::abs(static_cast<double>(got[col]) - want[col]));
    }
    const double error = largest / std::max(rms(want), 1e-30);
    ++result.num_tokens_checked;
    result.worst_error = std::max(result.worst_error, error);
    if (error > tolerance && !result.problem) {
      result.problem = fmt::format("layer {} token {}: off by {:.3g} rms, tolerance {:.3g}", layer,
                                   tokens[i], error, tolerance);
    }
  }
  return result;
}

}  // namespace epsweep
