// The CUDA engine on its doubles with one mistake, run by mutation_test.cc as several ranks: exits
// with 0 if nothing notices.
//   hostcuda_mutants list                       waits that may be left out: TURN WAIT
//   hostcuda_mutants leave_out TURN WAIT        under up to 50 seeds
//   hostcuda_mutants swap TRANSPORT UNIT WHAT   two send counts of rank 0: counts (those
//   announced),
//                                               dispatch or combine; none shows that it runs
//                                               without
// Says "cannot run" where the transport has no such unit or needs no such counts.
#include <cstdio>
#include <exception>
#include <map>
#include <sstream>
#include <string>

#include <unistd.h>

#include "hostcuda/layer_run.h"
#include "hostcuda/layer_scenarios.h"
#include "hostcuda/left_out.h"
#include "hostcuda/stream_queue.h"
#include "mpi/environment.h"

namespace epsweep {
namespace {

const Comm* g_world = nullptr;
// Blocking MPI calls that nobody answers end here, by a signal.
constexpr unsigned kMostSeconds = 30;

// Ends all ranks: others may wait for one that has noticed something.
[[noreturn]] void end_caught(const std::string& what) {
  std::printf("caught on rank %d: %s\n", g_world->rank(), what.c_str());
  std::fflush(stdout);
  abort_world(1);
}

// What lives as long as the process, such as the communicator of all ranks.
void make_what_is_made_once() {
  EpGroup group = group_of(g_world->size());
  for (const std::string& name : names_for<TransportCatalog>("cuda")) {
    OpenTransport(name, group).close();
  }
  group.close();
}

// With the turn each was first seen in. Also shows that nothing is noticed where nothing is wrong.
void list_waits() {
  std::map<std::string, std::int64_t> first_turn;
  const auto see = [&first_turn](std::size_t turn) {
    for (const std::string& wait : hostcuda::seen_waits()) {
      first_turn.emplace(wait, static_cast<std::int64_t>(turn));
    }
  };
  make_what_is_made_once();
  Scenarios scenarios;
  for (std::size_t turn = 0; turn < scenarios.num_gemms(); ++turn) {
    const std::string problem = scenarios.problem_under(turn, turn, Scenarios::Extent::all_points);
    if (!problem.empty()) end_caught(problem);
    see(turn);
  }
  std::string own;
  for (const auto& [wait, turn] : first_turn) own += wait + '@' + std::to_string(turn) + '\n';
  std::map<std::string, std::string> turns;  // of all ranks' waits
  for (const std::string& of_rank : g_world->gather(own, 0)) {
    std::istringstream lines(of_rank);
    for (std::string line; std::getline(lines, line);) {
      turns.emplace(line.substr(0, line.find('@')), line.substr(line.find('@') + 1));
    }
  }
  for (const auto& [wait, turn] : turns) std::printf("%s %s\n", turn.c_str(), wait.c_str());
}

// Half of the seeds run what first met the wait, the others everything in turn.
void run_without(std::size_t first_turn, const std::string& wait) {
  hostcuda::leave_out(wait);
  make_what_is_made_once();
  Scenarios scenarios;
  for (unsigned long long seed = 0; seed < 2 * kSeeds; ++seed) {
    alarm(kMostSeconds);
    const std::size_t turn = seed % 2 == 0 ? first_turn : static_cast<std::size_t>(seed / 2);
    const std::string problem =
        scenarios.problem_under(seed / 2, turn, Scenarios::Extent::all_points);
    if (!problem.empty()) end_caught(problem + ", seed " + std::to_string(seed / 2));
  }
}

enum class Swapped { none, counts, dispatch, combine };

// Swaps two different send counts of rank 0.
class SwappedCounts final : public Transport {
 public:
  SwappedCounts(Transport& inner, Backend& backend, Swapped what)
      : inner_(inner), backend_(backend), what_(what) {}

  void exchange_counts(Lane& lane, const Buffer& send, Buffer& recv,
                       std::span<const int> slots_of_rank) override {
    if (what_ != Swapped::counts) return inner_.exchange_counts(lane, send, recv, slots_of_rank);
    lane.synchronize();
    counts_.resize(static_cast<std::size_t>(send.bytes()) / sizeof(std::int64_t));
    backend_.copy_to_host(send, counts_.data(), send.bytes());
    swap_two();
    swapped_ = backend_.make_buffer(send.bytes());
    backend_.copy_from_host(counts_.data(), swapped_, send.bytes());
    inner_.exchange_counts(lane, swapped_, recv, slots_of_rank);
  }
  void all_to_all_v(Lane& lane, const Buffer& send, Buffer& recv,
                    const ExchangeRows& rows) override {
    const Swapped here = calls_++ == 0 ? Swapped::dispatch : Swapped::combine;
    counts_.assign(rows.send.begin(), rows.send.end());
    if (what_ == here) swap_two();
    inner_.all_to_all_v(lane, send, recv,
                        {.send = counts_,
                         .recv = rows.recv,
                         .row_bytes = rows.row_bytes,
                         .capacity = rows.capacity});
  }
  void close() override {}

 private:
  // The second and the next one that differs: counts to other ranks where there is one.
  void swap_two() {
    if (g_world->rank() != 0) return;
    const auto other =
        std::ranges::find_if(counts_.begin() + 2, counts_.end(),
                             [this](std::int64_t count) { return count != counts_[1]; });
    std::swap(counts_[1], other == counts_.end() ? counts_[0] : *other);
  }

  Transport& inner_;
  Backend& backend_;
  Swapped what_;
  int calls_ = 0;
  std::vector<std::int64_t> counts_;
  Buffer swapped_;
};

Swapped parse_swapped(const std::string& text) {
  if (text == "counts") return Swapped::counts;
  if (text == "dispatch") return Swapped::dispatch;
  return text == "combine" ? Swapped::combine : Swapped::none;
}

void run_swapped(const std::string& transport_name, const std::string& unit, Swapped what) {
  alarm(kMostSeconds);
  SweepPoint point = layer_point(g_world->size(), 30);
  point.transport = transport_name;
  point.grouped_gemm = "cublaslt_loop";
  point.exchange_unit = unit == "rank" ? ExchangeUnit::rank : ExchangeUnit::assignment;
  EpGroup group = group_of(point.ep_size);
  const auto backend = BackendCatalog::instance().at("cuda").make({.num_threads = 1});
  // Sections of fixed capacity travel whole, whatever is in them.
  const bool is_fixed = TransportCatalog::instance().at(transport_name).capacity == Capacity::fixed;
  const bool sends_counted = what == Swapped::dispatch || what == Swapped::combine;
  if (!can_run(point, *backend, group.ep_rank()) || (is_fixed && sends_counted)) {
    std::printf("cannot run\n");
    return;
  }
  OpenTransport transport(transport_name, group);
  SwappedCounts swapped(*transport, *backend, what);
  const LayerOutputs outputs =
      run_layers(point, group.ep_rank(), swapped, catalog_gemm(point), *backend);
  const OracleResult result = check_outputs(outputs);
  if (!outputs.counts_match) end_caught("counts that are not the plan's");
  if (!result.passed()) end_caught(*result.problem);
  g_world->barrier();
}

void run(const std::vector<std::string>& arguments) {
  const std::string kind = arguments.empty() ? "" : arguments[0];
  // Ranks that expect different messages of each other wait for ever.
  if (kind != "list") hostcuda::set_patience(5);
  if (kind == "list") {
    list_waits();
  } else if (kind == "leave_out" && arguments.size() == 3) {
    run_without(std::stoul(arguments[1]), arguments[2]);
  } else if (kind == "swap" && arguments.size() == 4) {
    run_swapped(arguments[1], arguments[2], parse_swapped(arguments[3]));
  } else {
    throw std::invalid_argument("list, leave_out TURN WAIT, or swap TRANSPORT UNIT WHAT");
  }
}

}  // namespace

const Comm& mpi_world() {
  return *g_world;
}

}  // namespace epsweep

int main(int argc, char** argv) {
  const epsweep::MpiEnvironment environment(argc, argv);
  epsweep::g_world = &environment.world();
  try {
    epsweep::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    epsweep::end_caught(error.what());
  }
  return 0;
}
