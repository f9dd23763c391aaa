// The time of an expert FFN from a table of measured ones.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "costs/forecast.h"

namespace epsweep {

// One rank, `slots` experts with as many rows each.
struct FfnSample {
  std::int64_t slots = 0;
  double rows_per_slot = 0;
  double seconds = 0;
};

// What no kernel can beat: max(rows * row_s, slot_s) for each slot. row_s = operations of a row /
// peak rate, slot_s = weight bytes of an expert / memory bandwidth. Zeros where nobody knows: times
// then grow like the rows beyond the table.
struct FfnFloor {
  double row_s = 0, slot_s = 0;
};

enum class FfnBasis { interpolated, more_rows, fewer_rows, other_slots };
constexpr const char* to_string(FfnBasis basis) {
  switch (basis) {
    case FfnBasis::interpolated:
      return "inside the table";
    case FfnBasis::more_rows:
      return "more rows than measured: last utilisation held";
    case FfnBasis::fewer_rows:
      return "fewer rows than measured: weight stream held";
    case FfnBasis::other_slots:
      return "other slots than measured: fixed + slots * time of a slot";
  }
  return "";
}

struct FfnForecast {
  TimeForecast time;
  FfnBasis basis = FfnBasis::interpolated;  // the farthest from the table of what it needed
};

// t = fixed + sum over slots of u(n, M_e), n = slots with rows. u is what a slot took in the table,
//   u(n, M) = (t(n, M) - fixed) / n,
// linear between measured M and between measured n, so that at measured points t is what was
// measured. Not max(weights, operations): measured times pass the knee between both up to 38 %
// above it (DeepGEMM on H800, see forecast.h). Outside of the table
//   more rows     u grows like FfnFloor does: the utilisation of the last measured M is held
//   fewer rows    u of the fewest measured: weights are streamed all the same
//   other slots   u of the nearest n: fixed + n * u
// `fixed` is what is left at no slots of all M that lie inside of what was measured at several n,
// by least squares of relative errors; 0 where none does.
class FfnTable {
 public:
  // Later samples of the same (slots, rows) are left out; samples without slots, rows or time too.
  explicit FfnTable(std::span<const FfnSample> samples, const FfnFloor& floor = {});

  bool empty() const { return curves_.empty(); }
  double fixed_s() const { return fixed_s_; }

  // Absent for an empty table; 0 seconds without rows. rows_per_slot: [slots of the rank].
  std::optional<FfnForecast> forecast(std::span<const std::int64_t> rows_per_slot) const;

 private:
  using Curve = std::map<double, double>;  // rows per slot -> seconds
  struct SlotTime {
    double seconds = 0;
    FfnBasis basis = FfnBasis::interpolated;
    double doublings = 0;  // from the samples it is taken from
  };
  SlotTime slot_s(std::int64_t slots, double rows) const;
  SlotTime on_curve(std::int64_t slots, const Curve& curve, double rows) const;
  double floor_s(double rows) const;

  FfnFloor floor_;
  std::map<std::int64_t, Curve> curves_;  // by slots
  double fixed_s_ = 0;
};

}  // namespace epsweep
