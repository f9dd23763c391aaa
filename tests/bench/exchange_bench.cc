// Dispatch + combine of one EP group as large as the world, against bare MPI_Alltoallv of the same
// counts. A program, not a test: it asserts no times.
//   mpirun -np 8 exchange_bench [rounds] [iterations] [tokens per rank]
// First the exchange of counts, from a common start to the end of the slowest rank. Then, printed
// per load: median of the rounds' ratios to bare MPI_Alltoallv (smallest - largest). A
// round's time is the median over iterations of the slowest rank's time in each.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/host_probe.h"
#include "base/random.h"
#include "base/statistics.h"
#include "device/transport.h"
#include "mpi/environment.h"
#include "mpi/ep_group.h"

namespace epsweep {
namespace {

constexpr std::int64_t kRowBytes = 2048 * 2;  // hidden 2048, bf16
constexpr int kExperts = 64, kTopK = 8;

enum class Skew { uniform, lognormal };

struct NoLane : Lane {
  void synchronize() override {}
};

// Rows rank `from` sends to every rank when its tokens pick kTopK distinct experts with the given
// popularity: the largest log(u) / weight win (weighted sampling without replacement, Efraimidis
// and Spirakis 2006).
std::vector<std::int64_t> rows_sent(int from, int size, int tokens, Skew skew) {
  const RandomStream load(1, Stream::load),
      pick(1, Stream::routing, static_cast<std::uint64_t>(from));
  std::array<double, kExperts> weight{};
  for (std::size_t e = 0; e < kExperts; ++e) {
    const double radius = std::sqrt(-2 * std::log(1 - load.uniform(2 * e)));
    const double normal = radius * std::cos(2 * M_PI * load.uniform(2 * e + 1));
    weight[e] = skew == Skew::uniform ? 1 : std::exp(normal);
  }
  std::vector<std::int64_t> rows(static_cast<std::size_t>(size));
  std::uint64_t index = 0;
  for (int token = 0; token < tokens; ++token) {
    std::array<double, kExperts> key{};
    for (std::size_t e = 0; e < kExperts; ++e)
      key[e] = std::log(1 - pick.uniform(index++)) / weight[e];
    std::array<int, kExperts> expert{};
    std::iota(expert.begin(), expert.end(), 0);
    std::partial_sort(expert.begin(), expert.begin() + kTopK, expert.end(), [&](int a, int b) {
      return key[static_cast<std::size_t>(a)] > key[static_cast<std::size_t>(b)];
    });
    for (int k = 0; k < kTopK; ++k) {
      ++rows[static_cast<std::size_t>(expert[static_cast<std::size_t>(k)] * size / kExperts)];
    }
  }
  return rows;
}

struct Load {
  std::vector<std::int64_t> send, recv;
};

Load make_load(const Comm& world, int tokens, Skew skew) {
  Load load;
  load.send = rows_sent(world.rank(), world.size(), tokens, skew);
  for (int from = 0; from < world.size(); ++from) {
    load.recv.push_back(
        rows_sent(from, world.size(), tokens, skew)[static_cast<std::size_t>(world.rank())]);
  }
  return load;
}

Buffer filled_buffer(const std::vector<std::int64_t>& rows) {
  const auto bytes = std::reduce(rows.begin(), rows.end()) * kRowBytes;
  Buffer buffer(std::malloc(static_cast<std::size_t>(bytes + 1)), bytes, std::free);
  std::memset(buffer.data(), 0x3c, static_cast<std::size_t>(bytes));
  return buffer;
}

// Counts and displacements in bytes, made before timing.
struct BareSide {
  std::vector<int> counts, offsets;
  explicit BareSide(const std::vector<std::int64_t>& rows) {
    int offset = 0;
    for (const std::int64_t count : rows) {
      counts.push_back(static_cast<int>(count * kRowBytes));
      offsets.push_back(offset);
      offset += counts.back();
    }
  }
};

// A way to do dispatch and combine.
struct Variant {
  std::string name;
  std::function<void()> dispatch_and_combine;
};

std::vector<Variant> make_variants(const Comm& world, const Load& load, Buffer& tokens,
                                   Buffer& routed,
                                   const std::vector<std::unique_ptr<Transport>>& transports,
                                   const std::vector<std::string>& names) {
  const auto bare = [comm = world.raw(), &tokens, &routed, out = BareSide(load.send),
                     in = BareSide(load.recv)] {
    MPI_Alltoallv(tokens.data(), out.counts.data(), out.offsets.data(), MPI_BYTE, routed.data(),
                  in.counts.data(), in.offsets.data(), MPI_BYTE, comm);
    MPI_Alltoallv(routed.data(), in.counts.data(), in.offsets.data(), MPI_BYTE, tokens.data(),
                  out.counts.data(), out.offsets.data(), MPI_BYTE, comm);
  };
  std::vector<Variant> variants{{"bare", bare}};
  for (std::size_t i = 0; i < transports.size(); ++i) {
    variants.push_back(
        {names[i], [&load, &tokens, &routed, transport = transports[i].get()] {
           NoLane lane;
           transport->all_to_all_v(lane, tokens, routed, {load.send, load.recv, kRowBytes});
           transport->all_to_all_v(lane, routed, tokens, {load.recv, load.send, kRowBytes});
         }});
  }
  return variants;
}

// Median over iterations of the slowest rank's seconds; the same on every rank.
double round_time(const Comm& world, const Variant& variant, int iterations) {
  std::vector<double> own, slowest(static_cast<std::size_t>(iterations));
  for (int i = 0; i < iterations; ++i) {
    world.barrier();
    const double start = monotonic_s();
    variant.dispatch_and_combine();
    own.push_back(monotonic_s() - start);
  }
  check_mpi(MPI_Allreduce(own.data(), slowest.data(), iterations, MPI_DOUBLE, MPI_MAX, world.raw()),
            "slowest rank of each iteration");
  return nearest_rank(slowest, 0.5);
}

void print_line(int tokens, Skew skew, const std::vector<Variant>& variants,
                const std::vector<std::vector<double>>& times) {
  std::printf("%6d  %-9s  bare %9.1f us", tokens, skew == Skew::uniform ? "uniform" : "lognormal",
              nearest_rank(times[0], 0.5) * 1e6);
  for (std::size_t v = 1; v < variants.size(); ++v) {
    std::vector<double> ratios;
    for (std::size_t round = 0; round < times[v].size(); ++round) {
      ratios.push_back(times[v][round] / times[0][round]);
    }
    std::printf("   %s %.2f (%.2f - %.2f)", variants[v].name.c_str(), nearest_rank(ratios, 0.5),
                *std::min_element(ratios.begin(), ratios.end()),
                *std::max_element(ratios.begin(), ratios.end()));
  }
  std::printf("\n");
  std::fflush(stdout);
}

void measure(const Comm& world, int tokens, Skew skew, int rounds, int iterations) {
  const EpGroup group(world, 0, 1);
  const std::vector<std::string> names{"pairwise", "alltoallv"};
  std::vector<std::unique_ptr<Transport>> transports;
  for (const auto& name : names) {
    transports.push_back(TransportCatalog::instance().at(name).make(group, nullptr));
  }
  const Load load = make_load(world, tokens, skew);
  Buffer out = filled_buffer(load.send), in = filled_buffer(load.recv);
  const auto variants = make_variants(world, load, out, in, transports, names);
  for (const Variant& variant : variants) round_time(world, variant, 5);
  std::vector<std::vector<double>> times(variants.size());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t turn = 0; turn < variants.size(); ++turn) {
      const std::size_t v = (turn + static_cast<std::size_t>(round)) % variants.size();
      times[v].push_back(round_time(world, variants[v], iterations));
    }
  }
  if (world.rank() == 0) print_line(tokens, skew, variants, times);
  for (const auto& transport : transports) transport->close();
}

// Seconds from a moment all ranks wait for, spinning, to the end of the slowest rank, of every
// iteration, ascending: a host's ranks share CLOCK_MONOTONIC. Nobody waits for a late start, only
// for messages.
std::vector<double> times_from_common_start(const Comm& world, const std::function<void()>& call,
                                            int iterations) {
  std::vector<double> own, slowest(static_cast<std::size_t>(iterations));
  for (int i = 0; i < iterations; ++i) {
    double start = monotonic_s() + 30e-6;
    check_mpi(MPI_Allreduce(MPI_IN_PLACE, &start, 1, MPI_DOUBLE, MPI_MAX, world.raw()), "start");
    while (monotonic_s() < start) {
    }
    call();
    own.push_back(monotonic_s() - start);
  }
  check_mpi(MPI_Allreduce(own.data(), slowest.data(), iterations, MPI_DOUBLE, MPI_MAX, world.raw()),
            "slowest rank of each iteration");
  std::sort(slowest.begin(), slowest.end());
  return slowest;
}

// What count_exchange asks of the transport, beside MPI_Alltoall of as many counts; in turns.
void measure_counts(const Comm& world, int num_slots, int rounds, int iterations) {
  const EpGroup group(world, 0, 1);
  const int size = world.size(), own_slots = num_slots / size;
  const std::vector<int> slots_of_rank(static_cast<std::size_t>(size), own_slots);
  const std::int64_t bytes = std::int64_t{8} * own_slots * size;
  Buffer send(std::calloc(1, static_cast<std::size_t>(bytes)), bytes, std::free);
  Buffer recv(std::calloc(1, static_cast<std::size_t>(bytes)), bytes, std::free);
  const auto transport = TransportCatalog::instance().at("pairwise").make(group, nullptr);
  NoLane lane;
  const auto counts = [&] { transport->exchange_counts(lane, send, recv, slots_of_rank); };
  const auto bare = [&] {
    MPI_Alltoall(send.data(), own_slots, MPI_INT64_T, recv.data(), own_slots, MPI_INT64_T,
                 world.raw());
  };
  std::vector<double> times, bare_times;
  for (int round = 0; round < rounds; ++round) {
    for (const double time : times_from_common_start(world, counts, iterations)) {
      times.push_back(time);
    }
    for (const double time : times_from_common_start(world, bare, iterations)) {
      bare_times.push_back(time);
    }
  }
  if (world.rank() == 0) {
    std::printf("counts of %3d slots: p50 %.2f us, p10 %.2f; MPI_Alltoall p50 %.2f us, p10 %.2f\n",
                num_slots, nearest_rank(times, 0.5) * 1e6, nearest_rank(times, 0.1) * 1e6,
                nearest_rank(bare_times, 0.5) * 1e6, nearest_rank(bare_times, 0.1) * 1e6);
  }
  transport->close();
}

void run(int argc, char** argv) {
  const MpiEnvironment environment(argc, argv);
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 9;
  const int iterations = argc > 2 ? std::max(1, std::atoi(argv[2])) : 60;
  const std::vector<int> ladder =
      argc > 3 ? std::vector<int>{std::max(1, std::atoi(argv[3]))} : std::vector{1, 4, 16, 64, 256};
  if (environment.world().rank() == 0) {
    std::printf("%d ranks, %d rounds of %d iterations; tokens per rank, load, times\n",
                environment.world().size(), rounds, iterations);
  }
  for (const int slots : {64, 256}) {
    measure_counts(environment.world(), slots, rounds, 10 * iterations);
  }
  for (const Skew skew : {Skew::uniform, Skew::lognormal}) {
    for (const int tokens : ladder) {
      measure(environment.world(), tokens, skew, rounds, iterations);
    }
  }
}

}  // namespace
}  // namespace epsweep

int main(int argc, char** argv) {
  try {
    epsweep::run(argc, argv);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    epsweep::abort_world(1);
  }
}
