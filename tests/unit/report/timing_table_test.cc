#include "report/timing_table.h"

#include <cstdlib>
#include <cstring>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/text.h"
#include "sample_point.h"

namespace epsweep {
namespace {

using testing::ScratchDir;

TimingTable counting_table() {
  std::vector<double> values(2 * 3 * 4 * kNumStages * kNumMeasures);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i) + 0.25;
  return TimingTable(2, 3, 4, std::move(values));
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

TEST(TimingTable, AxesAreRankIterationLayerStageMeasure) {
  const TimingTable table = counting_table();
  const double flat = (((1.0 * 3 + 2) * 4 + 3) * kNumStages + 5) * kNumMeasures + 1;
  EXPECT_DOUBLE_EQ(table.at(1, 2, 3, Stage::combine, Measure::end_s), flat + 0.25);
  EXPECT_DOUBLE_EQ(table.wall_s(1, 2, 3, Stage::combine), 1);
}

TEST(TimingTable, RefusesWhatDoesNotFit) {
  EXPECT_THROW(TimingTable(2, 3, 4, std::vector<double>(5)), RunError);
  EXPECT_THROW(TimingTable(0, 3, 4), RunError);
  const TimingTable table = counting_table();
  EXPECT_THROW(table.at(2, 0, 0, Stage::router, Measure::end_s), RunError);
  EXPECT_THROW(table.at(0, 0, -1, Stage::router, Measure::end_s), RunError);
}

TEST(TimingTable, NpyRoundTrip) {
  const ScratchDir dir;
  const TimingTable table = counting_table();
  write_npy(table, dir / "t.npy");
  const TimingTable again = read_npy(dir / "t.npy");
  EXPECT_EQ(again.num_ranks(), 2);
  EXPECT_EQ(again.num_iterations(), 3);
  EXPECT_EQ(again.num_layers(), 4);
  EXPECT_TRUE(std::equal(table.values().begin(), table.values().end(), again.values().begin(),
                         again.values().end()));
}

// Against the text of NumPy's format description (NEP 1), byte by byte.
TEST(TimingTable, NpyHeaderIsNumpys) {
  const ScratchDir dir;
  write_npy(counting_table(), dir / "t.npy");
  const std::string bytes = read_text_file(dir / "t.npy");
  EXPECT_EQ(bytes.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  const auto byte = [&bytes](std::size_t i) { return static_cast<unsigned char>(bytes.at(i)); };
  const std::size_t header_bytes = 10u + byte(8) + 256u * byte(9);
  EXPECT_EQ(header_bytes % 64, 0u);
  EXPECT_EQ(bytes.at(header_bytes - 1), '\n');
  const std::string dict = bytes.substr(10, header_bytes - 11);
  EXPECT_EQ(dict.substr(0, dict.find_last_not_of(' ') + 1),
            "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3, 4, 7, 3), }");
  EXPECT_EQ(bytes.size(), header_bytes + 2 * 3 * 4 * 7 * 3 * sizeof(double));
  double second = 0;
  std::memcpy(&second, bytes.data() + header_bytes + sizeof(double), sizeof(double));
  EXPECT_DOUBLE_EQ(second, 1.25);
}

TEST(TimingTable, NumpyReadsIt) {
  if (std::system("python3 -c 'import numpy' 2>/dev/null") != 0) GTEST_SKIP() << "no numpy here";
  const ScratchDir dir;
  write_npy(counting_table(), dir / "t.npy");
  const std::string command = fmt::format(
      "python3 -c \"import numpy, sys; a = numpy.load('{}'); "
      "sys.exit(0 if a.shape == (2, 3, 4, 7, 3) and a[1, 2, 3, 5, 1] == 499.25 else 1)\"",
      dir / "t.npy");
  EXPECT_EQ(std::system(command.c_str()), 0);
}

TEST(TimingTable, DamagedFilesAreNamed) {
  const ScratchDir dir;
  write_npy(counting_table(), dir / "t.npy");
  const std::string good = read_text_file(dir / "t.npy");
  const auto expect_refused = [&dir](const std::string& bytes) {
    write_text(dir / "bad.npy", bytes);
    try {
      read_npy(dir / "bad.npy");
      ADD_FAILURE() << "accepted";
    } catch (const RunError& error) {
      EXPECT_NE(std::string(error.what()).find(dir / "bad.npy"), std::string::npos);
    }
  };
  const auto replaced = [&good](const std::string& from, const std::string& to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };
  expect_refused(good.substr(0, good.size() - 8));
  expect_refused(good + "x");
  expect_refused(good.substr(0, 40));
  expect_refused("");
  expect_refused(replaced("<f8", "<f4"));
  expect_refused(replaced("False", "True "));
  expect_refused(replaced("(2, 3, 4, 7, 3)", "(2, 3, 4, 3, 7)"));
  expect_refused(replaced("(2, 3, 4, 7, 3)", "(2, 3, 28,1, 3)"));
  expect_refused(replaced("(2, 3, 4, 7, 3), }", "(2000000000, 2000000000, 2000000000, 7, 3)"));
  EXPECT_THROW(read_npy(dir / "absent.npy"), RunError);
}

TEST(TimingTable, WriteFailuresNameThePath) {
  const ScratchDir dir;
  try {
    write_npy(counting_table(), dir / "missing/t.npy");
    ADD_FAILURE() << "written";
  } catch (const RunError& error) {
    EXPECT_NE(std::string(error.what()).find("missing/t.npy"), std::string::npos);
  }
}

}  // namespace
}  // namespace epsweep
