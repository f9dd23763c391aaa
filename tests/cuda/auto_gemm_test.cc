// The kernel that picks among others: its rule on numbers, and what it does with candidates that
// are quick, slow, or fail.
#include "cuda/auto_gemm.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/error.h"
#include "cuda/cuda_lane.h"
#include "cuda/cuda_memory.h"
#include "device/gemm_choice.h"
#include "cuda/shared_weights_gemm.h"

namespace epsweep::cuda {
namespace {

using Candidate = GemmChoice::Candidate;

std::optional<std::size_t> best(const std::vector<Candidate>& candidates) {
  return best_candidate(candidates);
}

TEST(GemmChoiceRule, takes_the_fastest_that_was_measured) {
  EXPECT_EQ(best({{"a", 30.0, 1, ""}, {"b", 20.0, 9, ""}, {"c", 25.0, 1, ""}}), 1U);
  EXPECT_EQ(best({{"a", {}, 0, "why"}, {"b", 20.0, 9, ""}}), 1U);
  EXPECT_EQ(best({{"a", {}, 0, "why"}}), std::nullopt);
  EXPECT_EQ(best({}), std::nullopt);
}

// 102 is within 2 % of 100, 102.1 is not.
TEST(GemmChoiceRule, prefers_fewer_calls_among_equally_fast_ones) {
  EXPECT_EQ(best({{"a", 100.0, 8, ""}, {"b", 102.0, 3, ""}}), 1U);
  EXPECT_EQ(best({{"a", 100.0, 8, ""}, {"b", 102.1, 3, ""}}), 0U);
  EXPECT_EQ(best({{"a", 100.0, 3, ""}, {"b", 101.0, 8, ""}}), 0U);
  EXPECT_EQ(best({{"a", 101.0, 3, ""}, {"b", 100.0, 3, ""}}), 1U);
}

TEST(GemmChoiceRule, takes_the_earlier_of_equal_ones) {
  EXPECT_EQ(best({{"a", 100.0, 3, ""}, {"b", 100.0, 3, ""}}), 0U);
}

// What the fakes were asked to do.
struct Seen {
  int runs = 0;
  std::vector<const void*> weights;
};
Seen& seen() {
  static Seen instance;
  return instance;
}

constexpr std::int64_t kHeldBytes = 64 << 20;

// Overwrites y so many times instead of multiplying.
class Fake final : public SharedWeightsGemm {
 public:
  Fake(const GemmShape& shape, int num_calls) : SharedWeightsGemm(shape), num_calls_(num_calls) {}
  void warm(std::span<const std::int64_t>) override {
    held_ = make_device_buffer(kHeldBytes);
    seen().weights.push_back(weights().of(0));
  }
  GemmWork run(Lane& lane, const Buffer&, Buffer& y, std::span<const std::int64_t>) override {
    ++seen().runs;
    if (num_calls_ == 0) throw RunError("this one cannot run");
    for (int i = 0; i < num_calls_; ++i) {
      EPS_CUDA(cudaMemsetAsync(y.data(), num_calls_, static_cast<std::size_t>(y.bytes()),
                               stream_of(lane)));
    }
    GemmWork work;
    work.kernel_calls = num_calls_;
    return work;
  }

 private:
  int num_calls_;
  Buffer held_;
};

class OwnLayout final : public GroupedGemm {
 public:
  void prepare(const WeightSource&) override {}
  void warm(std::span<const std::int64_t>) override {}
  GemmWork run(Lane&, const Buffer&, Buffer&, std::span<const std::int64_t>) override { return {}; }
  void flush_weights() override {}
  std::int64_t weight_bytes() const override { return 0; }
};

template <int kCalls>
GroupedGemmEntry fake(const std::string& name) {
  return {.name = name,
          .backend = "cuda",
          .summary = "",
          .refuses = [](const GemmShape&) -> std::optional<std::string> { return std::nullopt; },
          .make = [](const GemmShape& shape, int) -> std::unique_ptr<GroupedGemm> {
            return std::make_unique<Fake>(shape, kCalls);
          }};
}

GroupedGemmEntry refusing() {
  GroupedGemmEntry entry = fake<1>("refuses");
  entry.refuses = [](const GemmShape&) -> std::optional<std::string> { return "too narrow"; };
  return entry;
}

GroupedGemmEntry with_own_layout() {
  GroupedGemmEntry entry = fake<1>("own_layout");
  entry.make = [](const GemmShape&, int) -> std::unique_ptr<GroupedGemm> {
    return std::make_unique<OwnLayout>();
  };
  return entry;
}

const GemmShape kShape{.num_experts = 2, .n = 16, .k = 32, .dtype = DType::bf16};

PayloadStream weights_of(int expert) {
  return {RandomStream(6, epsweep::Stream::test, static_cast<std::uint64_t>(expert)), 0x1p-8F};
}

std::unique_ptr<GroupedGemm> prepared(std::vector<GroupedGemmEntry> candidates) {
  auto gemm = make_auto_gemm(kShape, 1, std::move(candidates));
  gemm->prepare(weights_of);
  seen() = {};
  return gemm;
}

GemmWork run(GroupedGemm& gemm, const std::vector<std::int64_t>& rows) {
  CudaLane lane;
  Buffer x = make_device_buffer(1024), y = make_device_buffer(1024);
  const GemmWork work = gemm.run(lane, x, y, rows);
  lane.synchronize();
  return work;
}

std::int64_t free_bytes() {
  std::size_t free = 0, total = 0;
  EPS_CUDA(cudaMemGetInfo(&free, &total));
  return static_cast<std::int64_t>(free);
}

TEST(AutoGemm, takes_the_quickest_and_says_what_it_saw) {
  const auto gemm = prepared(
      {fake<200>("slow"), fake<1>("quick"), refusing(), fake<0>("throws"), with_own_layout()});
  const std::vector<std::int64_t> rows = {3, 0};
  gemm->warm(rows);
  const GemmWork work = run(*gemm, rows);
  EXPECT_EQ(work.kernel_calls, 1);
  ASSERT_NE(work.choice, nullptr);
  EXPECT_EQ(work.choice->chosen, "quick");
  const std::vector<Candidate>& all = work.choice->candidates;
  ASSERT_EQ(all.size(), 5U);
  EXPECT_EQ(all[0].name, "slow");
  EXPECT_EQ(all[0].kernel_calls, 200);
  EXPECT_GT(all[0].us.value(), all[1].us.value());
  EXPECT_GT(all[1].us.value(), 0);
  EXPECT_EQ(all[2].left_out, "too narrow");
  EXPECT_EQ(all[3].left_out, "this one cannot run");
  EXPECT_EQ(all[4].left_out, "has a weight layout of its own");
  for (std::size_t i = 2; i < 5; ++i) EXPECT_EQ(all[i].us, std::nullopt);
}

TEST(AutoGemm, lends_all_candidates_the_same_weights) {
  const auto gemm = prepared({fake<2>("a"), fake<1>("b")});
  gemm->warm(std::vector<std::int64_t>{1, 1});
  ASSERT_EQ(seen().weights.size(), 3U);  // both, and the one that was taken once more
  EXPECT_NE(seen().weights[0], nullptr);
  for (const void* weights : seen().weights) EXPECT_EQ(weights, seen().weights[0]);
}

// Row counts are measured once each; a call without rows needs no measurement.
TEST(AutoGemm, measures_every_vector_of_row_counts_once) {
  const auto gemm = prepared({fake<1>("only")});
  const std::vector<std::int64_t> rows = {3, 0}, others = {0, 3}, none = {0, 0};
  gemm->warm(rows);
  const int runs = seen().runs;
  EXPECT_GT(runs, 3);
  gemm->warm(rows);
  gemm->warm(none);
  EXPECT_EQ(seen().runs, runs);
  EXPECT_THROW(run(*gemm, others), RunError);
  gemm->warm(others);
  EXPECT_EQ(seen().runs, 2 * runs);
  EXPECT_EQ(run(*gemm, rows).kernel_calls, 1);
  EXPECT_EQ(run(*gemm, others).kernel_calls, 1);
  EXPECT_EQ(run(*gemm, none).kernel_calls, 0);
}

TEST(AutoGemm, keeps_no_memory_of_those_it_rejects) {
  flush_device_cache();  // its memory stays
  const auto gemm = prepared({fake<1>("a"), fake<100>("b"), fake<0>("throws"), fake<100>("c")});
  const std::int64_t before = free_bytes();
  gemm->warm(std::vector<std::int64_t>{1, 1});
  EXPECT_GE(before - free_bytes(), kHeldBytes);
  EXPECT_LT(before - free_bytes(), kHeldBytes * 3 / 2);
}

TEST(AutoGemm, says_why_where_nobody_is_left) {
  const auto gemm = prepared({fake<0>("throws"), refusing()});
  try {
    gemm->warm(std::vector<std::int64_t>{1, 1});
    FAIL() << "something was taken";
  } catch (const RunError& error) {
    EXPECT_STREQ(error.what(),
                 "auto: no kernel is left; throws: this one cannot run; refuses: too narrow");
  }
}

TEST(AutoGemm, has_every_kernel_of_the_catalog_as_a_candidate) {
  const GroupedGemmEntry& entry = GroupedGemmCatalog::instance().at("auto");
  EXPECT_EQ(entry.refuses(kShape), std::nullopt);
  const auto gemm = entry.make(kShape, 1);
  gemm->prepare(weights_of);
  const std::vector<std::int64_t> rows = {2, 1};
  gemm->warm(rows);
  const GemmWork work = run(*gemm, rows);
  std::vector<std::string> names;
  for (const Candidate& candidate : work.choice->candidates) names.push_back(candidate.name);
  for (const char* name : {"cublas_grouped", "cublas_padded_128", "cublaslt_loop",
                           "cublaslt_loop_4_streams", "cublaslt_padded", "gemv"}) {
    const auto found = std::ranges::find(names, name);
    ASSERT_NE(found, names.end()) << name;
    EXPECT_TRUE(work.choice->candidates[static_cast<std::size_t>(found - names.begin())].us)
        << name;
  }
  EXPECT_EQ(std::ranges::count(names, "auto"), 0);
}

// 5 elements of bf16 are 10 bytes: nobody takes them.
TEST(AutoGemm, refuses_what_all_refuse) {
  const GroupedGemmEntry& entry = GroupedGemmCatalog::instance().at("auto");
  const auto reason = entry.refuses({.num_experts = 1, .n = 5, .k = 5, .dtype = DType::bf16});
  ASSERT_TRUE(reason);
  EXPECT_NE(reason->find("gemv: wants outputs"), std::string::npos) << *reason;
}

}  // namespace
}  // namespace epsweep::cuda
