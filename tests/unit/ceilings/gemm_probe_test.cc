#include "ceilings/gemm_probe.h"

#include <gtest/gtest.h>

#include "device/grouped_gemm.h"
#include "scripted_device.h"

namespace epsweep {
namespace {

// What the made-up kernels below move on.
ScriptedClock* kernel_clock = nullptr;
std::vector<std::int64_t> sizes_run;

class ScriptedGemm final : public GroupedGemm {
 public:
  ScriptedGemm(const GemmShape& shape, double flop_per_s)
      : seconds_(2.0 * static_cast<double>(shape.n * shape.n * shape.n) / flop_per_s),
        size_(shape.n) {}
  void prepare(const WeightSource&) override {}
  void warm(std::span<const std::int64_t>) override {}
  GemmWork run(Lane&, const Buffer&, Buffer&, std::span<const std::int64_t>) override {
    kernel_clock->now_s += seconds_;
    if (sizes_run.empty() || sizes_run.back() != size_) sizes_run.push_back(size_);
    return {};
  }
  void flush_weights() override {}
  std::int64_t weight_bytes() const override { return 0; }

 private:
  double seconds_;
  std::int64_t size_;
};

std::unique_ptr<GroupedGemm> make_slow(const GemmShape& shape, int) {
  return std::make_unique<ScriptedGemm>(shape, 1e9);
}
std::unique_ptr<GroupedGemm> make_fast(const GemmShape& shape, int) {
  return std::make_unique<ScriptedGemm>(shape, 1e12);
}
std::unique_ptr<GroupedGemm> make_broken(const GemmShape&, int) {
  throw RunError("the library says no");
}
std::optional<std::string> refuse_all(const GemmShape&) {
  return "not this";
}

const bool kAdded = GroupedGemmCatalog::instance().add({.name = "t_slow", .make = make_slow}) &&
                    GroupedGemmCatalog::instance().add({.name = "t_fast", .make = make_fast}) &&
                    GroupedGemmCatalog::instance().add({.name = "t_broken", .make = make_broken}) &&
                    GroupedGemmCatalog::instance().add(
                        {.name = "t_refused", .refuses = refuse_all, .make = make_fast});

class GemmProbe : public testing::Test {
 protected:
  void SetUp() override {
    kernel_clock = &device.clock;
    sizes_run.clear();
  }
  std::optional<GemmRate> probe(const std::vector<std::string>& kernels, double budget_s) {
    return probe_gemm(device, kernels, DType::bf16, budget_s, ranks.together());
  }
  ScriptedDevice device;
  ScriptedRanks ranks;
};

TEST_F(GemmProbe, TheBestKernelIsTheCeiling) {
  const auto rate = probe({"t_slow", "t_fast", "t_refused"}, 0.3);
  ASSERT_TRUE(rate);
  EXPECT_EQ(rate->kernel, "t_fast");
  EXPECT_NEAR(rate->flop_per_s, 1e12, 1e3);
}

// At 1 TFLOP/s 2048 rows take 17 ms, and 4096 rows four times 137 ms: above 0.3 s.
TEST_F(GemmProbe, SizesGrowAsFarAsTheBudgetGoes) {
  EXPECT_TRUE(probe({"t_fast"}, 0.3));
  EXPECT_EQ(sizes_run, (std::vector<std::int64_t>{256, 512, 1024, 2048}));
  sizes_run.clear();
  // 256 rows take 34 ms at 1 GFLOP/s: already the next size is too much.
  EXPECT_TRUE(probe({"t_slow"}, 0.3));
  EXPECT_EQ(sizes_run, (std::vector<std::int64_t>{256}));
}

TEST_F(GemmProbe, ASlowerRankEndsTheGrowthForAll) {
  ranks.other = 100'000'000;  // 0.1 s
  EXPECT_TRUE(probe({"t_fast"}, 0.3));
  EXPECT_EQ(sizes_run, (std::vector<std::int64_t>{256}));
}

TEST_F(GemmProbe, AnEighthOfTheMemoryIsTheMost) {
  // 1024 rows of bf16 are 2 MiB a matrix, three of them; an eighth of 32 MiB is less.
  device.memory_bytes = std::int64_t{32} << 20;
  EXPECT_TRUE(probe({"t_fast"}, 0.3));
  EXPECT_EQ(sizes_run, (std::vector<std::int64_t>{256, 512}));
}

TEST_F(GemmProbe, WithoutAKernelThatCanThereIsNoRate) {
  EXPECT_FALSE(probe({"t_refused", "t_broken"}, 0.3));
  // Where another rank cannot, nobody goes on with that kernel.
  ranks.other = kFailed;
  EXPECT_FALSE(probe({"t_fast"}, 0.3));
  EXPECT_TRUE(sizes_run == (std::vector<std::int64_t>{256}));  // its first call
}

TEST_F(GemmProbe, RealKernelsHaveARateInEitherDtype) {
  ForwardingBackend cpu;
  for (const DType dtype : {DType::bf16, DType::fp32}) {
    const auto rate = probe_gemm(cpu, {"onednn"}, dtype, 1e-3, ranks.together());
    ASSERT_TRUE(rate);
    EXPECT_GT(rate->flop_per_s, 0);
    EXPECT_GE(rate->size, 256);
  }
}

}  // namespace
}  // namespace epsweep
