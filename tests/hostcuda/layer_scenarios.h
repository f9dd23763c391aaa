// What the CUDA engine does with a layer, in every way it may be asked to, with known results: what
// the tests of interleavings and of left-out waits run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/backend.h"
#include "plan/sweep_point.h"

namespace epsweep {

inline constexpr unsigned long long kSeeds = 50;

// All calls are collective over the world, which is one EP group.
class Scenarios {
 public:
  // Every transport and grouped GEMM of the backend.
  Scenarios();
  enum class Extent { all_points, one_point };
  // Of one transport and one grouped GEMM, with all exchange units and ways of launching that go with
  // them or with one, under that seed; "" if all is well and the bits are those of a run in which no
  // wait is left out. All have their turn as `turn` grows. Throws what the engine throws.
  std::string problem_under(unsigned long long seed, std::size_t turn, Extent extent);
  std::size_t num_gemms() const { return gemms_.size(); }

 private:
  struct Known {
    std::vector<std::vector<float>> output;             // [layers]
    std::vector<std::vector<std::int32_t>> own_choice;  // [layers]
  };
  const Known& known(const SweepPoint& point);
  std::vector<SweepPoint> points(const std::string& transport, const std::string& gemm) const;
  std::string problem_of(const SweepPoint& point, unsigned long long seed);

  std::unique_ptr<Backend> backend_;
  std::vector<std::string> transports_, gemms_;
  std::map<std::string, Known> known_;  // by label
};

}  // namespace epsweep
