#include "report/progress.h"

#include <cstdio>

#include <gtest/gtest.h>

namespace epsweep {
namespace {

const ProgressState kHalf = {5, 10, 60, "EP8 fixed_global 256 uniform"};

TEST(Progress, BarLine) {
  EXPECT_EQ(progress_bar_line(kHalf, 120),
            "[==========>         ] 5/10  EP8 fixed_global 256 uniform  1m00s left");
  EXPECT_EQ(progress_bar_line({0, 10, 0, "EP8"}, 120), "[>                   ] 0/10  EP8");
  EXPECT_EQ(progress_bar_line({10, 10, 60, "EP8"}, 120),
            "[====================] 10/10  EP8  0s left");
}

TEST(Progress, TheLabelGivesWayFirst) {
  EXPECT_EQ(progress_bar_line(kHalf, 45), "[==========>         ] 5/10  EP8   1m00s left");
  for (const int columns : {0, 1, 10, 30}) {
    EXPECT_LE(progress_bar_line(kHalf, columns).size(), static_cast<std::size_t>(columns) + 1);
  }
}

TEST(Progress, NoEstimateBeforeTheFirstPoint) {
  EXPECT_FALSE(remaining_s({0, 10, 5, ""}).has_value());
  EXPECT_DOUBLE_EQ(*remaining_s({2, 10, 5, ""}), 20);
}

TEST(Progress, Durations) {
  EXPECT_EQ(duration_text(-1), "0s");
  EXPECT_EQ(duration_text(59.4), "59s");
  EXPECT_EQ(duration_text(59.6), "1m00s");
  EXPECT_EQ(duration_text(125), "2m05s");
  EXPECT_EQ(duration_text(3 * 3600 + 7 * 60), "3h07m");
}

// A file is no terminal: one plain line per finished point and no control characters.
TEST(Progress, PlainLinesElsewhere) {
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  Progress progress(2, file);
  progress.begin_point("EP8 first");
  progress.end_point("measured");
  progress.begin_point("EP16 second");
  progress.clear();
  progress.end_point("skipped");
  std::rewind(file);
  std::string text(1000, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find("1/2 measured EP8 first ("), 0u);
  EXPECT_NE(text.find("\n2/2 skipped EP16 second (0s left)\n"), std::string::npos);
}

}  // namespace
}  // namespace epsweep
