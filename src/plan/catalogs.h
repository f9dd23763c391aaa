// The names an experiment may use, as facts: plan/ checks experiments against them without knowing
// who implements what. app/ fills them from the registries that are linked in.
#pragma once

#include <string>
#include <vector>

namespace epsweep {

// One parameter of a distribution: a key beside `distribution:` in the experiment file.
struct ParamSpec {
  enum class Kind { number, count, file };
  // Whether the parameter has its default where the experiment does not give it, or no value.
  enum class Presence { always, when_said };
  std::string name;
  Kind kind = Kind::number;
  double min = 0, max = 0, default_value = 0;  // of number and count
  std::string help;
  Presence presence = Presence::always;  // of number and count
};

// What a skewed distribution may be asked for instead of its skew parameter: rows of the hottest
// expert over mean rows, realised in the drawn tokens of each layer.
inline constexpr const char* kMaxOverMean = "max_over_mean";

struct DistributionInfo {
  std::string name;
  std::string summary;
  std::vector<ParamSpec> params;  // a file parameter has no default and is required
  // The parameter that max_over_mean may stand for; empty where there is none.
  std::string skew_param = {};
};

// How a placement fills slots: one for every expert, near-equal shares of them on all ranks; or
// more slots than experts where that is asked for, and the same number on every rank; or as a file
// lists them, the same number on every rank.
enum class SlotRule { one_per_expert, equal_per_rank, listed };

// Whether a placement can be fitted at all, and so flatters itself on the rows it was fitted to.
enum class FittedTo { nothing, rows };

struct PlacementInfo {
  std::string name;
  SlotRule slot_rule = SlotRule::one_per_expert;
  FittedTo fitted_to = FittedTo::nothing;
};

struct Catalogs {
  std::vector<DistributionInfo> distributions;
  std::vector<PlacementInfo> placements;
  std::vector<std::string> transports, grouped_gemms;
  // Of the backend that the experiment is read for.
  std::string default_transport, default_grouped_gemm;
};

}  // namespace epsweep
