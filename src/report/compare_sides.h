// The two sides of a comparison: a run each, or two choices of one run.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "report/result_file.h"

namespace epsweep {

// "grouped_gemm=loop": of an axis of `point` in the records, with its value as axis_text() gives
// it.
struct AxisChoice {
  std::string axis, value;
};

// `option` is what the text was given to. Throws ConfigError unless it is KEY=VALUE.
AxisChoice parse_axis_choice(const std::string& option, const std::string& text);

struct CompareSide {
  std::string name;  // "A" or "B"
  const RunData* run = nullptr;
  std::vector<AxisChoice> choices;
  std::set<std::string> axes;        // of any record of the run
  std::vector<const Json*> records;  // the chosen ones, of every state

  // "results/a with grouped_gemm loop"
  std::string text() const;
};

// What points may be chosen and matched by: the keys of `point`, without `index`.
std::set<std::string> axes_of(const Json& record);

// Throws ConfigError for an axis that no record has (with the nearest one), for two values of one
// axis, for choices that leave no point, and for a record whose `point` is no object.
CompareSide choose_side(const std::string& name, const RunData& run,
                        std::vector<AxisChoice> choices);

// One axis as people write it: "loop", "8", "zipf(zipf_alpha=1.2)", a model by its name, lists and
// objects as JSON; "none" where the record says nothing.
std::string axis_text(const Json& record, const std::string& axis);

// One axis as points are told apart by it: whatever the order of keys within it.
std::string axis_key(const Json& record, const std::string& axis);

// One axis of two records: "loop -> onednn"; of objects only what differs in them,
// "/ffn/launch_us 10 -> 20"; the text alone where they are equal.
std::string axis_change(const Json& a, const Json& b, const std::string& axis);

// The different texts of an axis, in the order of the records.
std::vector<std::string> axis_texts(const std::vector<const Json*>& records,
                                    const std::string& axis);
// "8, 16, 32" for a message: long values and long lists are cut.
std::string some_of(const std::vector<std::string>& values);

// "EP8 fixed_global 256 uniform contiguous pairwise onednn"
std::string short_point_label(const Json& record);

}  // namespace epsweep
