// Published measurements in tests/data, and how far predictions are from them.
#pragma once

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "base/statistics.h"
#include "base/text.h"

namespace epsweep {

// Lines of fields; comments and the line with the columns left out.
inline std::vector<std::vector<std::string>> published_rows(const std::string& file) {
  std::istringstream lines(read_text_file(EPSWEEP_SOURCE_DIR "/tests/data/" + file));
  std::vector<std::vector<std::string>> rows;
  bool columns_seen = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    std::vector<std::string> fields;
    std::istringstream rest(line);
    for (std::string field; std::getline(rest, field, ',');) fields.push_back(field);
    if (columns_seen) rows.push_back(std::move(fields));
    columns_seen = true;
  }
  return rows;
}

struct PublishedExchange {
  std::string set, stage;
  int ep_size = 0;
  double tokens_per_rank = 0, row_bytes = 0, seconds = 0;
};

inline std::vector<PublishedExchange> published_exchanges(const std::string& set_prefix) {
  std::vector<PublishedExchange> points;
  for (const auto& row : published_rows("published_exchange_times.csv")) {
    if (!row[0].starts_with(set_prefix)) continue;
    points.push_back({row[0], row[1], std::stoi(row[2]), std::stod(row[3]), std::stod(row[4]),
                      std::stod(row[5]) * 1e-6});
  }
  return points;
}

// predicted / measured - 1
struct Errors {
  std::vector<double> values;
  int num_covered = 0;  // by the interval of the prediction

  void add(double predicted, double measured) { values.push_back(predicted / measured - 1); }
  double median_size() const {
    std::vector<double> sizes;
    for (const double value : values) sizes.push_back(std::abs(value));
    std::ranges::sort(sizes);
    const std::size_t half = sizes.size() / 2;
    return sizes.size() % 2 == 1 ? sizes[half] : (sizes[half - 1] + sizes[half]) / 2;
  }
  double worst() const {
    return *std::ranges::max_element(values, {}, [](double value) { return std::abs(value); });
  }
};

}  // namespace epsweep
