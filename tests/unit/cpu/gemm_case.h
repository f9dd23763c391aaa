// One grouped product with known answers.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/bfloat16.h"
#include "base/random.h"
#include "cpu/cpu_backend.h"
#include "device/grouped_gemm.h"

namespace epsweep {

inline float element_of(const Buffer& buffer, DType dtype, std::int64_t index) {
  const auto i = static_cast<std::size_t>(index);
  return dtype == DType::bf16 ? float_of_bf16(buffer.as<std::uint16_t>()[i])
                              : buffer.as<float>()[i];
}

struct GemmCase {
  static constexpr std::int64_t kGuardRows = 2;

  GemmShape shape;
  std::vector<std::int64_t> rows;

  std::int64_t total_rows() const {
    return std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
  }
  static PayloadStream stream(Stream purpose, int number) {
    return {RandomStream(7, purpose, static_cast<std::uint64_t>(number)), 0x1p-8F};
  }
  static std::vector<float> values(const PayloadStream& stream, std::int64_t count) {
    std::vector<float> values(static_cast<std::size_t>(count));
    fill_payload(stream, 0, std::span(values));
    return values;
  }
  WeightSource weights() const {
    return [](int expert) { return stream(Stream::expert_down, expert); };
  }
  Buffer input() const {
    Buffer x = make_cpu_buffer((total_rows() + 1) * shape.k * bytes_of(shape.dtype));
    fill_payload(stream(Stream::token, 0), 0, total_rows() * shape.k, shape.dtype, x.data());
    return x;
  }
  // Poisoned, with rows beyond the last that nobody may touch.
  Buffer output() const {
    Buffer y = make_cpu_buffer((total_rows() + kGuardRows) * shape.n * bytes_of(shape.dtype));
    std::memset(y.data(), 0xff, static_cast<std::size_t>(y.bytes()));
    return y;
  }
};

struct GemmResult {
  Buffer y;
  GemmWork work;
};

inline std::unique_ptr<Lane> inline_lane() {
  return make_cpu_backend({.num_threads = 1})->make_lane();
}

inline GemmResult run_gemm(GroupedGemm& gemm, const GemmCase& given) {
  const std::unique_ptr<Lane> lane = inline_lane();
  const Buffer x = given.input();
  GemmResult result{given.output(), {}};
  result.work = gemm.run(*lane, x, result.y, given.rows);
  lane->synchronize();
  return result;
}

inline std::unique_ptr<GroupedGemm> prepared(const std::string& name, const GemmCase& given,
                                             int num_threads) {
  auto gemm = GroupedGemmCatalog::instance().at(name).make(given.shape, num_threads);
  gemm->prepare(given.weights());
  return gemm;
}

// Every element of every expert against double arithmetic. Tolerance, per element with
// a = sum |x * w|: k * 2^-24 * a, the bound on fp32 accumulation in any order; bf16 adds the
// rounding of the result, 2^-8 of it (and a little, as fp32 may have moved it).
inline void expect_correct(const GemmCase& given, const GemmResult& result) {
  const GemmShape& shape = given.shape;
  const Buffer x = given.input();
  std::int64_t row = 0, wrong = 0;
  for (int expert = 0; expert < shape.num_experts; ++expert) {
    const std::vector<float> w = GemmCase::values(given.weights()(expert), shape.n * shape.k);
    for (std::int64_t r = 0; r < given.rows[static_cast<std::size_t>(expert)]; ++r, ++row) {
      for (std::int64_t n = 0; n < shape.n; ++n) {
        double sum = 0, magnitude = 0;
        for (std::int64_t k = 0; k < shape.k; ++k) {
          const double product =
              static_cast<double>(element_of(x, shape.dtype, row * shape.k + k)) *
              static_cast<double>(w[static_cast<std::size_t>(n * shape.k + k)]);
          sum += product;
          magnitude += std::abs(product);
        }
        const double bf16_step = shape.dtype == DType::bf16 ? std::abs(sum) * 0x1.01p-8 : 0.0;
        const double allowed = bf16_step + static_cast<double>(shape.k) * 0x1p-24 * magnitude;
        const double found =
            static_cast<double>(element_of(result.y, shape.dtype, row * shape.n + n));
        // Negated so that NaN counts as wrong.
        if (!(std::abs(found - sum) <= allowed) && ++wrong <= 3) {
          ADD_FAILURE() << "expert " << expert << " row " << r << " col " << n << ": " << found
                        << " instead of " << sum << " +- " << allowed;
        }
      }
    }
  }
  EXPECT_EQ(wrong, 0);
  const auto used = static_cast<std::size_t>(row * shape.n * bytes_of(shape.dtype));
  const auto* bytes = static_cast<const unsigned char*>(result.y.data());
  for (std::size_t i = used; i < static_cast<std::size_t>(result.y.bytes()); ++i) {
    ASSERT_EQ(bytes[i], 0xff) << "byte " << i - used << " behind the last row was written";
  }
}

}  // namespace epsweep
