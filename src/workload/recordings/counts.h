// Recorded expert loads: how often each expert of each layer was picked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workload/recordings/cut.h"
#include "workload/routing_note.h"

namespace epsweep {

struct RecordedCounts {
  std::size_t num_experts = 0;
  std::optional<std::int64_t> top_k;        // where the recording says it
  std::vector<std::vector<double>> layers;  // [MoE layers][num_experts], none all zero
  std::vector<RoutingNote> notes;
};

// Counts of one layer, under the number it has in the recording.
struct CountsRow {
  std::int64_t layer = 0;
  std::vector<double> counts;
};

// Leaves out rows that are all zero (dense layers) and compares the totals of the others, which are
// equal in a complete recording. All rows have the same length.
RecordedCounts counts_of_rows(std::vector<CountsRow> rows);

// SGLang: {"logical_count": [layers][experts]}, or [steps][layers][experts], of which the cut takes
// some steps and adds them up. `where` names the text in messages. Throws ConfigError.
RecordedCounts read_sglang_counts(std::string_view text, const std::string& where, const Cut& cut);

// A count that can be added up exactly in doubles; empty if it is one, else what is wrong.
std::string count_problem(double count);

}  // namespace epsweep
