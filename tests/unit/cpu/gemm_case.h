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

inline void set_element(void* data, DType dtype, std::int64_t index, float value) {
  if (dtype == DType::bf16) {
    static_cast<std::uint16_t*>(data)[index] = bf16_of_float(value);
  } else {
    static_cast<float*>(data)[index] = value;
  }
}

struct GemmCase {
  static constexpr std::int64_t kGuardRows = 2;

  GemmShape shape;
  std::vector<std::int64_t> rows;

  std::int64_t total_rows() const {
    return std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
  }
  static float value(Stream stream, std::uint64_t a, std::int64_t index) {
    const RandomStream random(7, stream, a);
    const auto value =
        static_cast<float>(2 * random.uniform(static_cast<std::uint64_t>(index)) - 1);
    return float_of_bf16(bf16_of_float(value));  // exact in both dtypes
  }
  float weight(int expert, std::int64_t n, std::int64_t k) const {
    return value(Stream::expert_down, static_cast<std::uint64_t>(expert), n * shape.k + k);
  }
  WeightSource weights() const {
    return [*this](int expert, std::int64_t begin, std::int64_t end, void* out) {
      for (std::int64_t n = begin; n < end; ++n) {
        for (std::int64_t k = 0; k < shape.k; ++k) {
          set_element(out, shape.dtype, (n - begin) * shape.k + k, weight(expert, n, k));
        }
      }
    };
  }
  Buffer input() const {
    Buffer x = make_cpu_buffer((total_rows() + 1) * shape.k * bytes_of(shape.dtype));
    for (std::int64_t i = 0; i < total_rows() * shape.k; ++i) {
      set_element(x.data(), shape.dtype, i, value(Stream::token, 0, i));
    }
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
    std::vector<double> w(static_cast<std::size_t>(shape.n * shape.k));
    for (std::int64_t i = 0; i < shape.n * shape.k; ++i) {
      w[static_cast<std::size_t>(i)] =
          static_cast<double>(given.weight(expert, i / shape.k, i % shape.k));
    }
    for (std::int64_t r = 0; r < given.rows[static_cast<std::size_t>(expert)]; ++r, ++row) {
      for (std::int64_t n = 0; n < shape.n; ++n) {
        double sum = 0, magnitude = 0;
        for (std::int64_t k = 0; k < shape.k; ++k) {
          const double product =
              static_cast<double>(element_of(x, shape.dtype, row * shape.k + k)) *
              w[static_cast<std::size_t>(n * shape.k + k)];
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
