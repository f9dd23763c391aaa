// How long rank 0 takes to gather the times of a large launch, by fewer processes that hold as many
// bytes, under mpirun: gather_bench [MiB in all].
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

#include "base/host_probe.h"
#include "mpi/comm.h"
#include "mpi/environment.h"

int main(int argc, char** argv) {
  using namespace epsweep;
  const MpiEnvironment environment(argc, argv);
  const Comm& world = environment.world();
  // [1024 ranks][200 iterations][8 layers][7 stages][3 measures] of doubles by default.
  const double mebibytes = argc > 1 ? std::atof(argv[1]) : 262.5;
  const auto share = static_cast<std::size_t>(mebibytes * 0x1p20 / sizeof(double)) /
                     static_cast<std::size_t>(world.size());
  const std::vector<double> own(share, 1.0);
  for (int round = 0; round < 3; ++round) {
    world.barrier();
    const double begin_s = monotonic_s();
    const std::vector<double> all = world.gather(std::span<const double>(own), 0);
    if (world.rank() != 0) continue;
    std::printf("%d processes, %.1f MiB: gathered in %.3f s, peak of rank 0 %.2f GiB\n",
                world.size(), static_cast<double>(all.size()) * sizeof(double) / 0x1p20,
                monotonic_s() - begin_s, static_cast<double>(peak_resident_bytes()) / 0x1p30);
  }
}
