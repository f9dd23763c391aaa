#include "report/baseline_lines.h"

#include <gmock/gmock.h>

#include "report/point_choices.h"
#include "report/tables.h"
#include "sample_point.h"

namespace epsweep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

// A run whose points take what is said: of the layer, and of every stage a tenth of it.
class Baselines : public ::testing::Test {
 protected:
  RunData run{.dir = "results/a", .run = {{"identity", "x"}}, .points = {}};

  void add(SweepPoint point, const std::vector<double>& layer_us) {
    for (const double us : layer_us) {
      point.index = static_cast<int>(run.points.size());
      PointRecordInput input = testing::measured_input(point, us * 1e-7);
      input.timings->chain =
          summarize_chain(testing::even_chains(point.ep_size, point.iterations, us * 1e-6));
      run.points.push_back(make_point_record(input));
      ++point.repeat;
    }
  }
  void add(int ep_size, const std::string& kernel, const std::vector<double>& layer_us) {
    SweepPoint point = testing::sample_point(ep_size, 8);
    point.grouped_gemm = kernel;
    add(point, layer_us);
  }
  std::string text() const { return report_text({run}); }
};

// "a b  c" of "a  b    c": columns may widen.
std::string squeezed(std::string text) {
  for (std::size_t at; (at = text.find("  ")) != std::string::npos;) text.erase(at, 1);
  return text;
}

// The part from a title to the next empty line.
std::string section(const std::string& text, const std::string& title) {
  const std::size_t begin = text.find("\n" + title);
  if (begin == std::string::npos) return "";
  return squeezed(text.substr(begin + 1, text.find("\n\n", begin + 1) - begin));
}

TEST_F(Baselines, NothingIsSaidWhereNothingWasChosen) {
  add(2, "loop", {100, 101, 102, 103});
  add(4, "loop", {90});
  EXPECT_THAT(text(), AllOf(Not(HasSubstr("Kernels\n")), Not(HasSubstr("Exchanges\n")),
                            Not(HasSubstr("best choice"))));
}

// Of 16 rows for 8 experts M is 2. Medians of four are the second: of tenths 40.1, 20.1 and 80.1.
TEST_F(Baselines, TheUngroupedKernelStandsBesideTheGroupedOnes) {
  add(2, "onednn", {200, 201, 202, 203});
  add(2, "loop", {400, 401, 402, 403});
  add(2, "reference", {800, 801, 802, 803});
  const std::string kernels = section(text(), "Kernels");
  EXPECT_THAT(kernels, HasSubstr("EP tok/group tok/rank M mean loop onednn x loop reference x loop "
                                 "best\n"));
  EXPECT_THAT(kernels, HasSubstr("2 8 4 2.00 40.1 20.1 2.00 80.1 0.50 onednn\n"));
}

TEST_F(Baselines, ABestKernelThatRepeatsDoNotShowHasAQuestionMark) {
  add(2, "onednn", {200, 203});
  add(2, "loop", {202, 401});
  EXPECT_THAT(section(text(), "Kernels"), HasSubstr("20.0 1.01 onednn?\n"));
  run.points.clear();
  add(2, "onednn", {200, 200, 200});
  add(2, "loop", {400, 400, 400});
  EXPECT_THAT(section(text(), "Kernels"), HasSubstr("onednn?\n"));  // three and three are too few
}

TEST_F(Baselines, WithoutAnUngroupedKernelThereIsNoFactor) {
  add(2, "onednn", {200});
  add(2, "reference", {800});
  const std::string kernels = section(text(), "Kernels");
  EXPECT_THAT(kernels, AllOf(HasSubstr("20.0 80.0 onednn?\n"), Not(HasSubstr("x "))));
}

TEST_F(Baselines, AKernelThatCouldNotRunIsADash) {
  add(2, "cublaslt_loop", {400});
  add(2, "gemv", {200});
  add(4, "cublaslt_loop", {400});
  add(4, "cublaslt_loop_4_streams", {300});
  const std::string kernels = section(text(), "Kernels");
  EXPECT_THAT(kernels, HasSubstr("cublaslt_loop cublaslt_loop_4_streams x cublaslt_loop gemv x "
                                 "cublaslt_loop best\n"));
  EXPECT_THAT(kernels, HasSubstr("40.0 - - 20.0 2.00 gemv?\n"));
  EXPECT_THAT(kernels, HasSubstr("40.0 30.0 1.33 - - cublaslt_loop_4_streams?\n"));
}

TEST_F(Baselines, ExchangesAreComparedWithTheSameKernel) {
  for (const char* kernel : {"loop", "onednn"}) {
    for (const ExchangeUnit unit : {ExchangeUnit::assignment, ExchangeUnit::rank}) {
      SweepPoint point = testing::sample_point(4, 8);
      point.grouped_gemm = kernel;
      point.exchange_unit = unit;
      const double us = (unit == ExchangeUnit::rank ? 60 : 100) + (kernel[0] == 'l' ? 10 : 0);
      add(point, {us, us, us, us});
    }
  }
  const std::string exchanges = section(text(), "Exchanges");
  EXPECT_THAT(exchanges, HasSubstr("EP tok/group tok/rank M mean grouped_gemm assignment rank "
                                   "best\n"));
  EXPECT_THAT(exchanges, HasSubstr("loop 110.0 70.0 rank\n"));
  EXPECT_THAT(exchanges, HasSubstr("onednn 100.0 60.0 rank\n"));
  EXPECT_THAT(section(text(), "Kernels"), HasSubstr("exchange_unit loop onednn x loop best\n"));
}

// EP4 wins with its own kernel against EP2 with another one; with the same kernel it would not.
TEST_F(Baselines, EpSizesAreComparedEachAtItsBestChoice) {
  add(2, "loop", {100, 101, 102, 103});
  add(2, "onednn", {120, 121, 122, 123});
  add(4, "loop", {110, 111, 112, 113});
  add(4, "onednn", {80, 81, 82, 83});
  EXPECT_THAT(text(),
              HasSubstr("\nEP sizes, each at its best choice (layer p50, chained; chosen by these "
                        "same repeats)\n"
                        "  fixed_global 8: EP4 (onednn) against EP2 (loop): 19.8 % faster "
                        "(80.0-83.0 against 100.0-103.0 us, 4 and 4 repeats)\n"));
}

TEST_F(Baselines, LoadsAndOtherAxesStayApart) {
  for (const char* placement : {"contiguous", "eplb"}) {
    for (const int ep_size : {2, 4}) {
      SweepPoint point = testing::sample_point(ep_size, 8);
      point.placement = placement;
      point.transport = "pairwise";
      add(point, {100});
      point.transport = "alltoallv";
      add(point, {90.0 * ep_size});
    }
  }
  const std::string best = section(text(), "EP sizes");
  for (const char* placement : {"contiguous", "eplb"}) {
    EXPECT_THAT(best, HasSubstr(std::string("fixed_global 8 placement ") + placement +
                                ": EP4 (pairwise?) against EP2 (pairwise?): no difference shown "
                                "(100.0 against 100.0 us, 1 and 1 repeats)\n"));
  }
}

// Runs of one identity are repeats of each other.
TEST_F(Baselines, RunsOfOneIdentityAreRepeats) {
  add(2, "loop", {100, 101});
  add(2, "onednn", {50, 51});
  RunData again = run;
  again.dir = "results/b";
  EXPECT_THAT(squeezed(report_text({run})), HasSubstr(" onednn?\n"));
  EXPECT_THAT(squeezed(report_text({run, again})), HasSubstr("10.0 5.00 2.00 onednn\n"));
}

TEST(UngroupedKernels, AreKnownByTheirNames) {
  for (const char* name : {"loop", "cublaslt_loop", "cublaslt_loop_4_streams"}) {
    EXPECT_TRUE(is_ungrouped_kernel(name)) << name;
  }
  for (const char* name : {"onednn", "reference", "auto", "gemv", "looped"}) {
    EXPECT_FALSE(is_ungrouped_kernel(name)) << name;
  }
}

}  // namespace
}  // namespace epsweep
