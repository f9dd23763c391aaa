// Token operations against plain loops, on one and on several threads.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "cpu/router_op.h"
#include "cpu/vector_math.h"
#include "gemm_case.h"
#include "support/host_view.h"

namespace epsweep {
namespace {

void set_element(void* data, DType dtype, std::int64_t index, float value) {
  if (dtype == DType::bf16) {
    static_cast<std::uint16_t*>(data)[index] = bf16_of_float(value);
  } else {
    static_cast<float*>(data)[index] = value;
  }
}

Buffer random_buffer(DType dtype, std::int64_t count, std::uint64_t key, double range = 1) {
  Buffer buffer = make_cpu_buffer(count * bytes_of(dtype));
  const RandomStream random(3, Stream::test, key);
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = range * (2 * random.uniform(static_cast<std::uint64_t>(i)) - 1);
    set_element(buffer.data(), dtype, i, static_cast<float>(value));
  }
  return buffer;
}

Buffer poisoned(std::int64_t bytes) {
  Buffer buffer = make_cpu_buffer(bytes);
  std::memset(buffer.data(), 0xff, static_cast<std::size_t>(bytes));
  return buffer;
}

double at(const Buffer& buffer, DType dtype, std::int64_t index) {
  return static_cast<double>(element_of(buffer, dtype, index));
}

std::vector<std::int32_t> shuffled(std::int32_t count) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  const RandomStream random(5, Stream::test, 1);
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[random.below(i, i)]);
  }
  return order;
}

class CpuTokenOpsTest : public testing::TestWithParam<int> {
 protected:
  std::unique_ptr<Backend> backend_ = make_cpu_backend({.num_threads = GetParam()});
  std::unique_ptr<Lane> lane_ = backend_->make_lane();
  TokenOps& ops_ = backend_->token_ops();
};

// The scores of one token, by the book.
std::vector<double> scores_of(ScoreFunction score, std::vector<double> values) {
  double sum = 0;
  for (double& value : values) {
    if (score == ScoreFunction::sigmoid) value = 1 / (1 + std::exp(-value));
    if (score == ScoreFunction::sqrtsoftplus) value = std::sqrt(std::log1p(std::exp(value)));
    if (score == ScoreFunction::softmax) sum += value = std::exp(value);
  }
  if (score == ScoreFunction::softmax) {
    for (double& value : values) value /= sum;
  }
  return values;
}

std::vector<double> weights_of(const RouterOp& op, const std::vector<double>& logits,
                               const std::int32_t* chosen) {
  const std::vector<double> scores = scores_of(op.score, logits);
  std::vector<double> weights;
  for (int j = 0; j < op.top_k; ++j) weights.push_back(scores[static_cast<std::size_t>(chosen[j])]);
  if (op.score == ScoreFunction::topk_softmax) {
    weights = scores_of(ScoreFunction::softmax, weights);
  }
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) {
    weight *= static_cast<double>(op.scale) / (op.renormalize ? sum : 1.0);
  }
  return weights;
}

// Logits are exact to about 1e-6 here, so weights are to about 1e-5 of themselves.
void check_router(TokenOps& ops, Lane& lane, const RouterOp& op) {
  const Buffer x = random_buffer(op.dtype, op.num_tokens * op.hidden_dim, 1);
  const Buffer gate = random_buffer(DType::fp32, op.num_experts * op.hidden_dim, 2, 0.3);
  const std::int64_t choices = op.num_tokens * op.top_k;
  std::vector<std::int32_t> prescribed;
  for (std::int64_t i = 0; i < choices; ++i) {
    prescribed.push_back(static_cast<std::int32_t>((i * 7 + 3) % op.num_experts));
  }
  Buffer own = poisoned(choices * 4), weights = poisoned(choices * 4);
  ops.router(lane, op, x, gate, host_view(prescribed), own, weights);
  for (std::int64_t t = 0; t < op.num_tokens; ++t) {
    std::vector<double> logits;
    for (std::int64_t e = 0; e < op.num_experts; ++e) {
      double sum = 0;
      for (std::int64_t h = 0; h < op.hidden_dim; ++h) {
        sum +=
            at(x, op.dtype, t * op.hidden_dim + h) * at(gate, DType::fp32, e * op.hidden_dim + h);
      }
      logits.push_back(sum);
    }
    const auto expected = weights_of(op, logits, prescribed.data() + t * op.top_k);
    std::vector<std::int32_t> order(logits.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
    });
    for (int j = 0; j < op.top_k; ++j) {
      const double weight = at(weights, DType::fp32, t * op.top_k + j);
      const double wanted = expected[static_cast<std::size_t>(j)];
      EXPECT_NEAR(weight, wanted, 1e-5 * std::abs(wanted) + 1e-9)
          << "token " << t << " place " << j;
      EXPECT_EQ(own.as<std::int32_t>()[static_cast<std::size_t>(t * op.top_k + j)],
                order[static_cast<std::size_t>(j)])
          << "token " << t << " place " << j;
    }
  }
}

TEST_P(CpuTokenOpsTest, RouterScores) {
  for (const ScoreFunction score : {ScoreFunction::softmax, ScoreFunction::topk_softmax,
                                    ScoreFunction::sigmoid, ScoreFunction::sqrtsoftplus}) {
    for (const bool renormalize : {false, true}) {
      for (const DType dtype : {DType::bf16, DType::fp32}) {
        SCOPED_TRACE(testing::Message() << "score " << static_cast<int>(score) << " renormalize "
                                        << renormalize << " " << to_string(dtype));
        check_router(ops_, *lane_, {7, 50, 10, 3, dtype, score, renormalize, 2.5F});
        check_router(ops_, *lane_, {70, 64, 16, 2, dtype, score, renormalize, 1.0F});
        check_router(ops_, *lane_, {1, 131, 5, 5, dtype, score, renormalize, 1.0F});
      }
    }
  }
}

TEST_P(CpuTokenOpsTest, RouterTiesGoToTheLowerId) {
  const RouterOp op{2, 16, 6, 3, DType::fp32, ScoreFunction::sigmoid, false, 1.0F};
  Buffer x = make_cpu_buffer(2 * 16 * 4), gate = make_cpu_buffer(6 * 16 * 4);
  for (float& value : x.as<float>()) value = 1;
  const std::vector<float> levels = {0.1F, 0.3F, 0.2F, 0.3F, 0.2F, 0.2F};
  for (std::size_t i = 0; i < gate.as<float>().size(); ++i) gate.as<float>()[i] = levels[i / 16];
  const std::vector<std::int32_t> prescribed = {0, 1, 2, 0, 1, 2};
  Buffer own = poisoned(24), weights = poisoned(24);
  ops_.router(*lane_, op, x, gate, host_view(prescribed), own, weights);
  const auto chosen = own.as<std::int32_t>();
  EXPECT_EQ(std::vector<std::int32_t>(chosen.begin(), chosen.end()),
            (std::vector<std::int32_t>{1, 3, 2, 1, 3, 2}));
}

TEST_P(CpuTokenOpsTest, ScatterThenGatherRoundTrips) {
  // 3 copies of each row, in a stride wider than the row; sizes that one and several chunks take.
  for (const std::int64_t row_bytes : {6, 4096}) {
    const std::int64_t stride = row_bytes + 10;
    const std::int32_t tokens = 300, copies = 3;
    Buffer in = random_buffer(DType::bf16, tokens * stride / 2, 9);
    const std::vector<std::int32_t> position = shuffled(tokens * copies);
    Buffer sent = poisoned(tokens * copies * row_bytes);
    Buffer back = poisoned(tokens * copies * row_bytes);
    const Buffer rows = host_view(position);
    const RowIndex index{.buffer = &rows, .count = tokens * copies};
    ops_.scatter_rows(*lane_, in, stride, copies, index, row_bytes, sent);
    ops_.gather_rows(*lane_, sent, index, row_bytes, back);
    for (std::int64_t i = 0; i < tokens * copies; ++i) {
      ASSERT_EQ(std::memcmp(back.as<char>().data() + i * row_bytes,
                            in.as<char>().data() + i / copies * stride,
                            static_cast<std::size_t>(row_bytes)),
                0)
          << "row " << i;
    }
  }
}

// bf16 results are rounded once: by 2^-8 of the value at most. fp32: exp and the division to 1e-6.
TEST_P(CpuTokenOpsTest, Activations) {
  for (const DType dtype : {DType::bf16, DType::fp32}) {
    const double tolerance = dtype == DType::bf16 ? 0x1.01p-8 : 1e-6;
    const std::int64_t rows = 67, cols = 1037;
    const Buffer in = random_buffer(dtype, rows * 2 * cols, 4, 12);
    Buffer out = poisoned((rows + 1) * cols * bytes_of(dtype));
    ops_.activation(*lane_, Activation::swiglu, dtype, rows, cols, in, out);
    for (std::int64_t i = 0; i < rows * cols; ++i) {
      const double gate = at(in, dtype, i / cols * 2 * cols + i % cols);
      const double up = at(in, dtype, i / cols * 2 * cols + cols + i % cols);
      const double expected = gate / (1 + std::exp(-gate)) * up;
      ASSERT_NEAR(at(out, dtype, i), expected, tolerance * std::abs(expected));
    }
    EXPECT_TRUE(std::isnan(at(out, dtype, rows * cols)));
    ops_.activation(*lane_, Activation::squared_relu, dtype, rows, cols, in, out);
    for (std::int64_t i = 0; i < rows * cols; ++i) {
      const double positive = std::max(at(in, dtype, i), 0.0);
      ASSERT_NEAR(at(out, dtype, i), positive * positive, tolerance * positive * positive);
    }
    const Buffer nan = poisoned(2 * bytes_of(dtype) * 32);
    ops_.activation(*lane_, Activation::swiglu, dtype, 1, 32, nan, out);
    EXPECT_TRUE(std::isnan(at(out, dtype, 0))) << "poison must survive";
    ops_.activation(*lane_, Activation::squared_relu, dtype, 1, 32, nan, out);
    EXPECT_TRUE(std::isnan(at(out, dtype, 31))) << "poison must survive";
  }
}

// Tolerance: top_k additions of fp32.
TEST_P(CpuTokenOpsTest, WeightedReduce) {
  const int top_k = 3;
  const std::int32_t tokens = 210;
  for (const DType dtype : {DType::bf16, DType::fp32}) {
    for (const std::int64_t cols : {1, 50, 2100}) {
      const Buffer in = random_buffer(dtype, tokens * top_k * cols, 6);
      const Buffer weights = random_buffer(DType::fp32, tokens * top_k, 7);
      const std::vector<std::int32_t> position = shuffled(tokens * top_k);
      Buffer out = poisoned(tokens * cols * 4);
      const Buffer rows = host_view(position);
      ops_.weighted_reduce(*lane_, dtype, top_k, {.buffer = &rows, .count = tokens * top_k},
                           weights, cols, in, out);
      for (std::int64_t t = 0; t < tokens; ++t) {
        for (std::int64_t c = 0; c < cols; ++c) {
          double sum = 0;
          for (std::int64_t j = t * top_k; j < (t + 1) * top_k; ++j) {
            sum += at(weights, DType::fp32, j) *
                   at(in, dtype, position[static_cast<std::size_t>(j)] * cols + c);
          }
          ASSERT_NEAR(at(out, DType::fp32, t * cols + c), sum, 1e-6) << t << " " << c;
        }
      }
    }
  }
}

// Rows of 6 bytes, read 10 apart and written where granules of 2 bytes say.
TEST_P(CpuTokenOpsTest, MoveRowsBetweenStrides) {
  const std::int32_t rows = 40;
  const Buffer in = random_buffer(DType::bf16, rows * 5, 11);
  const std::vector<std::int32_t> source = shuffled(rows);
  std::vector<std::int32_t> position;
  for (std::int32_t i = 0; i < rows; ++i) position.push_back(4 * (rows - 1 - i));
  Buffer out = poisoned(rows * 8), packed = poisoned(rows * 6);
  const Buffer from = host_view(source), to = host_view(position);
  ops_.move_rows(*lane_,
                 {.row_bytes = 6,
                  .in_stride_bytes = 10,
                  .out_stride_bytes = 2,
                  .source = {.buffer = &from, .count = rows},
                  .position = {.buffer = &to, .count = rows}},
                 in, out);
  ops_.move_rows(*lane_,
                 {.row_bytes = 6,
                  .in_stride_bytes = 10,
                  .out_stride_bytes = 6,
                  .source = {.buffer = &from, .count = rows},
                  .position = {}},
                 in, packed);
  for (std::size_t i = 0; i < source.size(); ++i) {
    const char* const want = in.as<char>().data() + source[i] * 10;
    const char* const got = out.as<char>().data() + (source.size() - 1 - i) * 8;
    EXPECT_EQ(std::memcmp(got, want, 6), 0) << i;
    EXPECT_EQ(got[6], '\xff') << "bytes between rows stay";
    EXPECT_EQ(std::memcmp(packed.as<char>().data() + i * 6, want, 6), 0) << i;
  }
}

// Segments of 0 to 6 rows. Tolerance: 6 additions of fp32, and one rounding to bf16 (2^-8).
TEST_P(CpuTokenOpsTest, SegmentReduce) {
  std::vector<std::int32_t> first = {0};
  for (std::int32_t s = 0; s < 150; ++s) first.push_back(first.back() + s % 7);
  const std::int32_t rows = first.back();
  const std::vector<std::int32_t> row = shuffled(rows);
  const Buffer first_of = host_view(first), row_of = host_view(row);
  for (const DType in_dtype : {DType::bf16, DType::fp32}) {
    for (const DType out_dtype : {in_dtype, DType::fp32}) {
      for (const std::int64_t cols : {1, 50, 2100}) {
        const Buffer in = random_buffer(in_dtype, rows * cols, 6);
        const Buffer weights = random_buffer(DType::fp32, rows, 7);
        for (const Buffer* weight : {&weights, static_cast<const Buffer*>(nullptr)}) {
          Buffer out = poisoned(150 * cols * bytes_of(out_dtype));
          ops_.segment_reduce(*lane_,
                              {.in_dtype = in_dtype,
                               .out_dtype = out_dtype,
                               .cols = cols,
                               .segments = 150,
                               .first = &first_of,
                               .row = &row_of,
                               .weights = weight},
                              in, out);
          for (std::size_t s = 0; s < 150; ++s) {
            for (std::int64_t c = 0; c < cols; ++c) {
              double sum = 0;
              for (std::int32_t i = first[s]; i < first[s + 1]; ++i) {
                sum += (weight == nullptr ? 1 : at(weights, DType::fp32, i)) *
                       at(in, in_dtype, row[static_cast<std::size_t>(i)] * cols + c);
              }
              const double rounding = out_dtype == DType::bf16 ? 0x1p-8 * std::abs(sum) : 0;
              ASSERT_NEAR(at(out, out_dtype, static_cast<std::int64_t>(s) * cols + c), sum,
                          2e-6 + rounding);
            }
          }
        }
      }
    }
  }
}

// 9 MB in one op go past the caches; in three ops of 3 MB they do not.
TEST_P(CpuTokenOpsTest, LargeResultsAreThoseOfSmallOps) {
  const std::int64_t rows = 3 * 730, cols = 2056, part = rows / 3;
  const Buffer in = random_buffer(DType::bf16, rows * 2 * cols, 4, 12);
  Buffer large = poisoned(rows * cols * 2), small = poisoned(part * cols * 2);
  ops_.activation(*lane_, Activation::swiglu, DType::bf16, rows, cols, in, large);
  Buffer slice = poisoned(part * 2 * cols * 2);
  for (std::int64_t i = 0; i < 3; ++i) {
    std::memcpy(slice.data(), in.as<char>().data() + i * slice.bytes(),
                static_cast<std::size_t>(slice.bytes()));
    ops_.activation(*lane_, Activation::swiglu, DType::bf16, part, cols, slice, small);
    EXPECT_EQ(std::memcmp(large.as<char>().data() + i * small.bytes(), small.data(),
                          static_cast<std::size_t>(small.bytes())),
              0);
  }

  const std::vector<std::int32_t> order = shuffled(static_cast<std::int32_t>(rows));
  const Buffer index = host_view(order);
  Buffer gathered = poisoned(large.bytes()), back = poisoned(large.bytes());
  const RowIndex all{.buffer = &index, .count = rows};
  ops_.gather_rows(*lane_, large, all, cols * 2, gathered);
  ops_.scatter_rows(*lane_, gathered, cols * 2, 1, all, cols * 2, back);
  EXPECT_EQ(std::memcmp(back.data(), large.data(), static_cast<std::size_t>(back.bytes())), 0);

  const Buffer weights = random_buffer(DType::fp32, rows, 7);
  Buffer sums = poisoned(part * cols * 4);
  ops_.weighted_reduce(*lane_, DType::bf16, 3, all, weights, cols, large, sums);
  for (std::int64_t t = 0; t < part; t += 17) {
    for (std::int64_t c = 0; c < cols; ++c) {
      double sum = 0;
      for (std::int64_t j = 3 * t; j < 3 * t + 3; ++j) {
        sum += at(weights, DType::fp32, j) *
               at(large, DType::bf16, order[static_cast<std::size_t>(j)] * cols + c);
      }
      ASSERT_NEAR(at(sums, DType::fp32, t * cols + c), sum, 1e-4) << t << " " << c;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, CpuTokenOpsTest, testing::Values(1, 2));

TEST(VectorMath, AccurateEverywhere) {
  for (double x = -87; x < 88; x += 0.0137) {
    const auto f = static_cast<float>(x);
    const double exact = std::exp(static_cast<double>(f));
    ASSERT_NEAR(static_cast<double>(fast_exp(f)), exact, 3e-7 * exact) << f;
    // Rounding of 1 + u and of the quotient on top of exp.
    const double softplus = std::log1p(std::exp(static_cast<double>(f)));
    ASSERT_NEAR(static_cast<double>(fast_softplus(f)), softplus, 1e-6 * softplus) << f;
  }
  EXPECT_EQ(fast_exp(0.0F), 1.0F);
  EXPECT_TRUE(std::isnan(fast_exp(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_LT(fast_exp(-1000.0F), 1e-37F);
  EXPECT_TRUE(std::isfinite(fast_exp(1000.0F)));
}

}  // namespace
}  // namespace epsweep
