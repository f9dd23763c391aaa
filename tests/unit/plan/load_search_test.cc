#include "plan/load_search.h"

#include <set>

#include <gmock/gmock.h>

#include "base/error.h"

namespace epsweep {
namespace {

using Load = std::optional<std::int64_t>;

LoadSearch search_after(std::initializer_list<std::int64_t> admitted, std::int64_t refused,
                        LoadEnd how, double resolution = 0.1) {
  LoadSearch search(resolution);
  for (const std::int64_t tokens : admitted) search.end(tokens, LoadEnd::admitted);
  search.end(refused, how);
  if (how == LoadEnd::too_slow) search.end(refused, how);
  return search;
}

TEST(LoadSearch, ALadderWithoutALimitEndsAtItsEnd) {
  LoadSearch search(0.1);
  for (const std::int64_t tokens : {16, 32, 64}) search.end(tokens, LoadEnd::admitted);
  EXPECT_EQ(search.admitted(), 64);
  EXPECT_EQ(search.refused(), std::nullopt);
  EXPECT_EQ(search.stopped_by(), StopKind::ladder_end);
  EXPECT_EQ(search.next_between(), std::nullopt);
  EXPECT_EQ(search.most_left(), 0);
}

// sqrt(32 * 64) = 45.3, sqrt(45 * 64) = 53.7, sqrt(45 * 54) = 49.3; 49 / 45 = 1.09.
TEST(LoadSearch, GeometricMeansNarrowWhatDeviceMemoryRefuses) {
  LoadSearch search = search_after({16, 32}, 64, LoadEnd::device_memory);
  EXPECT_EQ(search.most_left(), 3);
  EXPECT_EQ(search.next_between(), 45);
  search.end(45, LoadEnd::admitted);
  EXPECT_EQ(search.next_between(), 54);
  search.end(54, LoadEnd::device_memory);
  EXPECT_EQ(search.most_left(), 1);
  EXPECT_EQ(search.next_between(), 49);
  search.end(49, LoadEnd::device_memory);
  EXPECT_EQ(search.next_between(), std::nullopt);
  EXPECT_EQ(search.admitted(), 45);
  EXPECT_EQ(search.refused(), 49);
  EXPECT_EQ(search.stopped_by(), StopKind::device_memory);
}

TEST(LoadSearch, OneSlowSampleRefusesNothing) {
  LoadSearch search(0.1);
  search.end(16, LoadEnd::admitted);
  search.end(32, LoadEnd::too_slow);
  EXPECT_EQ(search.again(), 32);
  EXPECT_EQ(search.refused(), std::nullopt);
  EXPECT_THROW(search.end(64, LoadEnd::admitted), RunError);  // nothing comes between
  search.end(32, LoadEnd::admitted);
  EXPECT_EQ(search.again(), std::nullopt);
  EXPECT_EQ(search.admitted(), 32);
}

TEST(LoadSearch, TwoSlowSamplesRefuseTheLoad) {
  LoadSearch search(0.1);
  search.end(16, LoadEnd::admitted);
  search.end(32, LoadEnd::too_slow);
  search.end(32, LoadEnd::too_slow);
  EXPECT_EQ(search.again(), std::nullopt);
  EXPECT_EQ(search.refused(), 32);
  EXPECT_EQ(search.stopped_by(), StopKind::latency_objective);
  EXPECT_EQ(search.next_between(), 23);
  // In the bisection too.
  search.end(23, LoadEnd::too_slow);
  EXPECT_EQ(search.again(), 23);
  EXPECT_EQ(search.next_between(), std::nullopt);
  search.end(23, LoadEnd::admitted);
  EXPECT_EQ(search.admitted(), 23);
  EXPECT_EQ(search.next_between(), 27);
}

// A second try that ran out of memory is refused by that, and one that went wrong says nothing.
TEST(LoadSearch, OtherEndsOfASecondAttempt) {
  LoadSearch memory(0.1);
  memory.end(32, LoadEnd::too_slow);
  memory.end(32, LoadEnd::device_memory);
  EXPECT_EQ(memory.stopped_by(), StopKind::device_memory);
  LoadSearch wrong(0.1);
  wrong.end(32, LoadEnd::too_slow);
  wrong.end(32, LoadEnd::no_answer);
  EXPECT_EQ(wrong.again(), std::nullopt);
  EXPECT_EQ(wrong.refused(), std::nullopt);
  wrong.end(64, LoadEnd::admitted);
  EXPECT_EQ(wrong.admitted(), 64);
}

TEST(LoadSearch, TheEdgeOfTheKvRoomIsTriedFirst) {
  LoadSearch search = search_after({16, 32}, 64, LoadEnd::kv_memory);
  search.know_kv_room(40);
  EXPECT_EQ(search.refused(), 41);
  EXPECT_EQ(search.next_between(), 40);
  LoadSearch slow = search;
  search.end(40, LoadEnd::admitted);
  EXPECT_EQ(search.next_between(), std::nullopt);
  EXPECT_EQ(search.admitted(), 40);
  EXPECT_EQ(search.stopped_by(), StopKind::kv_memory);
  // sqrt(32 * 40) = 35.8, sqrt(36 * 40) = 37.9; 40 / 38 = 1.05.
  EXPECT_EQ(slow.most_left(), 3);
  for (int attempt = 0; attempt < 2; ++attempt) slow.end(40, LoadEnd::too_slow);
  EXPECT_EQ(slow.next_between(), 36);
  slow.end(36, LoadEnd::admitted);
  EXPECT_EQ(slow.next_between(), 38);
  slow.end(38, LoadEnd::admitted);
  EXPECT_EQ(slow.next_between(), std::nullopt);
  EXPECT_EQ(slow.stopped_by(), StopKind::latency_objective);
}

TEST(LoadSearch, AKvRoomWithinTheResolutionIsNotTried) {
  LoadSearch search = search_after({32}, 64, LoadEnd::kv_memory);
  search.know_kv_room(34);  // 35 / 32 = 1.09
  EXPECT_EQ(search.next_between(), std::nullopt);
  EXPECT_EQ(search.admitted(), 32);
}

TEST(LoadSearch, NothingIsBelowARefusedFirstLoad) {
  for (const LoadEnd how : {LoadEnd::kv_memory, LoadEnd::device_memory, LoadEnd::too_slow}) {
    const LoadSearch search = search_after({}, 16, how);
    EXPECT_EQ(search.refused(), 16);
    EXPECT_EQ(search.admitted(), std::nullopt);
    EXPECT_EQ(search.next_between(), std::nullopt);
  }
}

TEST(LoadSearch, LoadsWithoutAnAnswerAreNotTriedAgain) {
  LoadSearch of_ladder(0.1);
  of_ladder.end(256, LoadEnd::admitted);
  of_ladder.end(512, LoadEnd::no_answer);
  of_ladder.end(1024, LoadEnd::device_memory);
  EXPECT_EQ(of_ladder.next_between(), std::nullopt);  // sqrt(256 * 1024) = 512
  LoadSearch between = search_after({32}, 64, LoadEnd::device_memory);
  between.end(45, LoadEnd::no_answer);
  EXPECT_EQ(between.next_between(), std::nullopt);
  EXPECT_EQ(between.admitted(), 32);
  // Above what is refused nothing is news.
  between.end(128, LoadEnd::admitted);
  EXPECT_EQ(between.admitted(), 32);
  EXPECT_EQ(between.refused(), 64);
}

TEST(LoadSearch, WithoutAResolutionOnlyTheLadderRuns) {
  LoadSearch search(std::nullopt);
  search.end(32, LoadEnd::admitted);
  search.end(64, LoadEnd::device_memory);
  EXPECT_EQ(search.refused(), 64);
  EXPECT_EQ(search.next_between(), std::nullopt);
  EXPECT_EQ(search.most_left(), 0);
}

// Every place a limit can be at, every kind of it, several resolutions: the search ends with the
// limit between its two loads, after no more loads than it foresaw, none of them twice.
struct Truth {
  std::int64_t limit = 0;  // the highest load within
  LoadEnd beyond = LoadEnd::device_memory;
  std::int64_t slow_once = 0;  // a load whose first sample is slow
};
LoadEnd end_at(const Truth& truth, std::int64_t tokens) {
  return tokens <= truth.limit ? LoadEnd::admitted : truth.beyond;
}

void feed(const Truth& truth, std::int64_t tokens, LoadSearch& search) {
  search.end(tokens, tokens == truth.slow_once ? LoadEnd::too_slow : end_at(truth, tokens));
  if (search.again()) search.end(tokens, end_at(truth, tokens));
  if (search.refused() == tokens && search.admitted() && truth.beyond == LoadEnd::kv_memory) {
    search.know_kv_room(truth.limit);
  }
}

void expect_found(const Truth& truth, double resolution) {
  LoadSearch search(resolution);
  for (std::int64_t tokens = 4; tokens <= 256 && !search.refused(); tokens *= 2) {
    feed(truth, tokens, search);
  }
  std::set<std::int64_t> tried;
  const int most = search.most_left();
  while (const Load next = search.next_between()) {
    ASSERT_TRUE(tried.insert(*next).second) << *next;
    ASSERT_GT(*next, *search.admitted());
    ASSERT_LT(*next, *search.refused());
    feed(truth, *next, search);
    ASSERT_LE(static_cast<int>(tried.size()) + search.most_left(), most + 1) << truth.limit;
  }
  if (truth.limit >= 256) {
    EXPECT_EQ(search.stopped_by(), StopKind::ladder_end);
    EXPECT_EQ(search.admitted(), 256);
    return;
  }
  ASSERT_TRUE(search.admitted() && search.refused()) << truth.limit;
  EXPECT_LE(*search.admitted(), truth.limit);
  EXPECT_GT(*search.refused(), truth.limit);
  const double ratio =
      static_cast<double>(*search.refused()) / static_cast<double>(*search.admitted());
  EXPECT_TRUE(ratio <= 1 + resolution || *search.refused() == *search.admitted() + 1)
      << truth.limit << " " << ratio;
  EXPECT_LE(static_cast<int>(tried.size()), most + 1) << truth.limit;  // rounding may cost one
}

TEST(LoadSearch, FindsEveryLimitOfEveryKind) {
  for (const LoadEnd beyond : {LoadEnd::kv_memory, LoadEnd::device_memory, LoadEnd::too_slow}) {
    for (const double resolution : {0.001, 0.02, 0.1, 0.5, 1.0}) {
      for (std::int64_t limit = 4; limit <= 300; ++limit) {
        expect_found({.limit = limit, .beyond = beyond}, resolution);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(LoadSearch, ASlowSampleAnywhereChangesNothing) {
  for (std::int64_t slow_once = 4; slow_once <= 256; ++slow_once) {
    for (const std::int64_t limit : {4, 77, 128, 255, 300}) {
      expect_found({.limit = limit, .beyond = LoadEnd::too_slow, .slow_once = slow_once}, 0.1);
      expect_found({.limit = limit, .beyond = LoadEnd::kv_memory, .slow_once = slow_once}, 0.1);
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace epsweep
