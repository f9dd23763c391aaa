#include "report/csv.h"

#include <algorithm>
#include <clocale>
#include <locale>
#include <sstream>

#include <gtest/gtest.h>

#include "base/text.h"
#include "sample_point.h"

namespace epsweep {
namespace {

using testing::measured_input;
using testing::sample_point;
using testing::skipped_input;

class CommaDecimals : public std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

// The German one of the C library where it is installed, and of C++ streams in any case.
class CommaLocale {
 public:
  CommaLocale()
      : cpp_(std::locale::global(std::locale(std::locale::classic(), new CommaDecimals))),
        c_(std::setlocale(LC_ALL, nullptr)) {
    std::setlocale(LC_ALL, "de_DE.UTF-8");
  }
  ~CommaLocale() {
    std::locale::global(cpp_);
    std::setlocale(LC_ALL, c_.c_str());
  }

 private:
  std::locale cpp_;
  std::string c_;
};

// Fields of RFC 4180 lines; the inverse of csv_field().
std::vector<std::vector<std::string>> parse_csv(const std::string& text) {
  std::vector<std::vector<std::string>> lines(1);
  std::string field;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
      field += text[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == ',' || c == '\n')) {
      lines.back().push_back(field);
      field.clear();
      if (c == '\n') lines.emplace_back();
    } else {
      field += c;
    }
  }
  lines.pop_back();
  return lines;
}

std::string value_of(const std::vector<std::vector<std::string>>& lines, std::size_t line,
                     const std::string& column) {
  for (std::size_t i = 0; i < lines[0].size(); ++i) {
    if (lines[0][i] == column) return lines[line].at(i);
  }
  return "no column " + column;
}

TEST(Csv, QuotesOnlyWhereNeeded) {
  EXPECT_EQ(csv_field("plain text"), "plain text");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("say \"hi\""), "\"say \"\"hi\"\"\"");
  EXPECT_EQ(csv_field("two\nlines"), "\"two\nlines\"");
  EXPECT_EQ(csv_field("cr\r"), "\"cr\r\"");
  EXPECT_EQ(csv_field(""), "");
}

TEST(Csv, EveryLineHasEveryColumn) {
  PointRecordInput odd = skipped_input(sample_point(8, 8), "host \"n1,n2\"\nis small, by 4.1 GiB");
  odd.point.routing.params = {{"zipf_alpha", 1.25}};
  const auto lines = parse_csv(
      points_csv({make_point_record(measured_input(sample_point(4, 8))), make_point_record(odd)}));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[1].size(), lines[0].size());
  EXPECT_EQ(lines[2].size(), lines[0].size());
  EXPECT_EQ(lines[0].front(), "index");
  EXPECT_EQ(value_of(lines, 1, "ep_size"), "4");
  EXPECT_EQ(value_of(lines, 1, "tokens_global"), "8");
  EXPECT_EQ(value_of(lines, 1, "dispatch_a_remote_bytes"), "256");
  EXPECT_EQ(value_of(lines, 1, "layer_p99_us"), "");
  EXPECT_EQ(value_of(lines, 1, "reason"), "");
  EXPECT_EQ(value_of(lines, 2, "reason"), odd.reason);
  EXPECT_EQ(value_of(lines, 2, "routing"), "uniform(zipf_alpha=1.25)");
  EXPECT_EQ(value_of(lines, 2, "layer_p50_us"), "");
}

TEST(Csv, ColumnNamesAreUnique) {
  auto names =
      parse_csv(points_csv({make_point_record(measured_input(sample_point(4, 8)))})).front();
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

// Case C56.
TEST(Csv, DecimalsHaveDotsInAnyLocale) {
  PointRecordInput input = measured_input(sample_point(4, 8), 1234.5e-6);
  input.load.foreign_load = 0.125;
  const std::string plain_line = to_json_line(make_point_record(input));
  const std::string plain_csv = points_csv({make_point_record(input)});
  std::string line, csv;
  {
    const CommaLocale comma;
    std::ostringstream proof;
    proof << 1.5;
    ASSERT_EQ(proof.str(), "1,5");
    line = to_json_line(make_point_record(input));
    csv = points_csv({parse_json(line, "record")});
  }
  EXPECT_EQ(line, plain_line);
  EXPECT_EQ(csv, plain_csv);
  EXPECT_EQ(value_of(parse_csv(csv), 1, "load_foreign_load"), "0.125");
}

}  // namespace
}  // namespace epsweep
