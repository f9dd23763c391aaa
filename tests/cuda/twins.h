// Random cases, and the two backends side by side.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "base/bfloat16.h"
#include "base/random.h"
#include "device/backend.h"

namespace epsweep::cuda {

// Draws of one random case.
class Draws {
 public:
  explicit Draws(std::uint64_t key) : random_(12, epsweep::Stream::test, key) {}
  // In [low, high].
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(
                     random_.below(next_++, static_cast<std::uint64_t>(high - low + 1)));
  }
  bool coin() { return between(0, 1) == 1; }
  template <typename T>
  T one_of(std::initializer_list<T> values) {
    return *(values.begin() + between(0, static_cast<std::int64_t>(values.size()) - 1));
  }
  // Eighths in [-4, 4]: sums of some products of two are exact in fp32, so fusing and order do not
  // matter.
  std::vector<float> eighths(std::int64_t count) {
    std::vector<float> values;
    for (std::int64_t i = 0; i < count; ++i)
      values.push_back(static_cast<float>(between(-32, 32)) / 8);
    return values;
  }
  std::vector<float> floats(std::int64_t count, double range) {
    std::vector<float> values;
    for (std::int64_t i = 0; i < count; ++i) {
      values.push_back(static_cast<float>(range * (2 * random_.uniform(next_++) - 1)));
    }
    return values;
  }
  std::vector<std::uint8_t> bytes(std::int64_t count) {
    std::vector<std::uint8_t> values;
    for (std::int64_t i = 0; i < count; ++i)
      values.push_back(static_cast<std::uint8_t>(between(0, 255)));
    return values;
  }
  std::vector<std::int32_t> indices(std::int64_t count, std::int64_t bound) {
    std::vector<std::int32_t> values;
    for (std::int64_t i = 0; i < count; ++i)
      values.push_back(static_cast<std::int32_t>(between(0, bound - 1)));
    return values;
  }
  // Distinct ones.
  std::vector<std::int32_t> places(std::int64_t count, std::int64_t bound) {
    std::vector<std::int32_t> values;
    for (std::int64_t i = 0; i < bound; ++i) values.push_back(static_cast<std::int32_t>(i));
    for (std::int64_t i = 0; i < count; ++i) {
      std::swap(values[static_cast<std::size_t>(i)],
                values[static_cast<std::size_t>(between(i, bound - 1))]);
    }
    values.resize(static_cast<std::size_t>(count));
    return values;
  }

 private:
  RandomStream random_;
  std::uint64_t next_ = 0;
};

// One of the two backends, and its side of a test's buffers.
class Side {
 public:
  explicit Side(const char* name)
      : backend_(BackendCatalog::instance().at(name).make({.num_threads = 1})),
        lane_(backend_->make_lane()) {}

  TokenOps& ops() { return backend_->token_ops(); }
  Lane& lane() { return *lane_; }
  template <typename T>
  Buffer with(const std::vector<T>& values) {
    const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(T));
    Buffer buffer = backend_->make_buffer(bytes);
    backend_->copy_from_host(values.data(), buffer, bytes);
    return buffer;
  }
  // As the dtype, rounded.
  Buffer with(const std::vector<float>& values, DType dtype) {
    if (dtype == DType::fp32) return with(values);
    std::vector<std::uint16_t> half;
    for (const float value : values) half.push_back(bf16_of_float(value));
    return with(half);
  }
  Buffer poisoned(std::int64_t bytes) {
    Buffer buffer = backend_->make_buffer(bytes);
    backend_->poison(buffer);
    return buffer;
  }
  template <typename T>
  std::vector<T> host(const Buffer& buffer) {
    lane_->synchronize();
    std::vector<T> values(static_cast<std::size_t>(buffer.bytes()) / sizeof(T));
    backend_->copy_to_host(buffer, values.data(), buffer.bytes());
    return values;
  }
  std::vector<float> host_values(const Buffer& buffer, DType dtype) {
    if (dtype == DType::fp32) return host<float>(buffer);
    std::vector<float> values;
    for (const std::uint16_t half : host<std::uint16_t>(buffer))
      values.push_back(float_of_bf16(half));
    return values;
  }

 private:
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Lane> lane_;
};

inline constexpr std::uint64_t kCases = 40;

class Twins : public testing::Test {
 protected:
  // What `run(side)` returns is the same on both.
  template <typename Run>
  void expect_same(const Run& run) {
    EXPECT_EQ(run(cuda_), run(cpu_));
  }
  Side cuda_{"cuda"}, cpu_{"cpu"};
};

}  // namespace epsweep::cuda
