// GoogleTest's main for tests that run as several ranks: rank 0 reports as usual, failures of other
// ranks appear with their rank, and the exit code of every rank is that of the worst.
#include <cstdio>
#include <exception>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "mpi/environment.h"
#include "support/mpi_world.h"

namespace epsweep {
namespace {

const Comm* g_world = nullptr;

// Tests start together, so that messages of one never meet receives of the next.
class BarrierBetweenTests : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& /*info*/) override { g_world->barrier(); }
  void OnTestEnd(const testing::TestInfo& /*info*/) override { g_world->barrier(); }
};

class FailuresWithRank : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& info) override {
    test_ = std::string(info.test_suite_name()) + "." + info.name();
  }
  // One call, so that the lines of several ranks do not mix.
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    const char* file = result.file_name() != nullptr ? result.file_name() : "unknown file";
    const std::string text = "[rank " + std::to_string(g_world->rank()) + "] " + test_ + "\n" +
                             file + ":" + std::to_string(result.line_number()) + ": " +
                             result.message() + "\n";
    std::fputs(text.c_str(), stderr);
  }
  std::string test_;
};

void set_listeners(int rank) {
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  if (rank != 0) {
    const std::unique_ptr<testing::TestEventListener> printer(
        listeners.Release(listeners.default_result_printer()));
    const std::unique_ptr<testing::TestEventListener> xml(
        listeners.Release(listeners.default_xml_generator()));
    listeners.Append(new FailuresWithRank);
  }
  listeners.Append(new BarrierBetweenTests);
}

// Ends all ranks, since the others would wait for one that an exception took out of its test.
int run_all_or_abort(int rank) {
  testing::GTEST_FLAG(catch_exceptions) = false;
  try {
    return RUN_ALL_TESTS();
  } catch (const std::exception& error) {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    std::fprintf(stderr, "[rank %d] exception in %s.%s: %s\n", rank,
                 test != nullptr ? test->test_suite_name() : "",
                 test != nullptr ? test->name() : "", error.what());
    abort_world(1);
  }
}

// 0 only if every rank passed and ran at least one test that was not skipped.
int run_tests(const Comm& world) {
  const bool listing = testing::GTEST_FLAG(list_tests);
  int failed = run_all_or_abort(world.rank());
  const auto& tests = *testing::UnitTest::GetInstance();
  if (!listing && tests.successful_test_count() + tests.failed_test_count() == 0) {
    std::fprintf(stderr, "[rank %d] no test ran\n", world.rank());
    failed = 1;
  }
  const auto failed_ranks = world.all_sum(std::int64_t{failed != 0});
  if (failed_ranks != 0 && world.rank() == 0) {
    std::fprintf(stderr, "tests failed on %d of %d ranks\n", static_cast<int>(failed_ranks),
                 world.size());
  }
  return failed_ranks == 0 ? 0 : 1;
}

int start_and_run(int argc, char** argv) {
  const MpiEnvironment environment(argc, argv);
  const std::string problem = launch_problem(environment.world().size());
  if (!problem.empty()) {
    std::fprintf(stderr, "%s\n", problem.c_str());
    return 1;
  }
  testing::InitGoogleTest(&argc, argv);
  g_world = &environment.world();
  set_listeners(g_world->rank());
  return run_tests(*g_world);
}

}  // namespace

const Comm& mpi_world() {
  return *g_world;
}

}  // namespace epsweep

int main(int argc, char** argv) {
  try {
    return epsweep::start_and_run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    epsweep::abort_world(1);
  }
}
