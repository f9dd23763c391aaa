#include "mpi/clock_sync.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <system_error>

#include <time.h>

namespace epsweep {
namespace {

// Apart from the gather's tag and from those of the exchanges.
constexpr int kClockTag = 12;

// Rounding of seconds in doubles (2 ns after 100 days) and steps between cores' counters.
constexpr double kReadingError_s = 20e-9;

constexpr int kAskTime = 0;
constexpr int kAskAlignment = 1;  // the last question

// Empty where the kernel does not say.
std::string own_clock_key() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  if (!(file >> boot)) return "";
  std::error_code none;  // kernels before 5.6 have no time namespaces
  return boot + " " + std::filesystem::read_symlink("/proc/self/ns/time", none).string();
}

template <std::size_t n>
void send(const Comm& comm, const std::array<double, n>& values, int to) {
  check_mpi(MPI_Send(values.data(), static_cast<int>(n), MPI_DOUBLE, to, kClockTag, comm.raw()),
            "clock alignment, sending");
}

template <std::size_t n>
std::array<double, n> receive(const Comm& comm, int from) {
  std::array<double, n> values{};
  check_mpi(MPI_Recv(values.data(), static_cast<int>(n), MPI_DOUBLE, from, kClockTag, comm.raw(),
                     MPI_STATUS_IGNORE),
            "clock alignment, receiving");
  return values;
}

// Until a message is there. Sleeps between looks, so that ranks whose turn has not come leave their
// cores to the ping-pongs of others.
void wait_for_turn(const Comm& comm, int from) {
  constexpr long kFirstSleepNs = 20'000, kLongestSleepNs = 1'000'000;
  int there = 0;
  for (long sleep_ns = kFirstSleepNs;; sleep_ns = std::min(2 * sleep_ns, kLongestSleepNs)) {
    check_mpi(MPI_Iprobe(from, kClockTag, comm.raw(), &there, MPI_STATUS_IGNORE),
              "clock alignment, waiting");
    if (there != 0) return;
    const timespec pause{0, sleep_ns};
    nanosleep(&pause, nullptr);
  }
}

int receive_question(const Comm& comm, int from) {
  int question = 0;
  check_mpi(MPI_Recv(&question, 1, MPI_INT, from, kClockTag, comm.raw(), MPI_STATUS_IGNORE),
            "clock alignment, receiving");
  return question;
}

void send_question(const Comm& comm, int question, int to) {
  check_mpi(MPI_Send(&question, 1, MPI_INT, to, kClockTag, comm.raw()), "clock alignment, sending");
}

void send_alignment(const Comm& comm, const ClockAlignment& alignment, int to) {
  send(comm, std::array{alignment.own_s, alignment.offset_s, alignment.bound_s}, to);
}

ClockAlignment receive_alignment(const Comm& comm, int from) {
  const auto values = receive<3>(comm, from);
  return {.own_s = values[0], .offset_s = values[1], .bound_s = values[2]};
}

void answer(const Comm& comm, const RankClock& clock, const ClockAlignment& own, int child) {
  while (receive_question(comm, child) == kAskTime) send(comm, std::array{clock.now_s()}, child);
  send_alignment(comm, own, child);
}

// One question and its answer.
struct RoundTrip {
  double asked_s = 0, answered_s = 0;  // own clock
  double parent_s = 0;                 // the parent's clock somewhere in between

  double length_s() const { return answered_s - asked_s; }
  double middle_s() const { return asked_s + length_s() / 2; }
};

RoundTrip ask_time(const Comm& comm, const RankClock& clock, int parent) {
  RoundTrip trip;
  trip.asked_s = clock.now_s();
  send_question(comm, kAskTime, parent);
  trip.parent_s = receive<1>(comm, parent)[0];
  trip.answered_s = clock.now_s();
  return trip;
}

// Makes the connection and waits until the parent is aligned itself.
RoundTrip first_round_trip(const Comm& comm, const RankClock& clock, int parent) {
  RoundTrip trip;
  trip.asked_s = clock.now_s();
  send_question(comm, kAskTime, parent);
  wait_for_turn(comm, parent);
  trip.parent_s = receive<1>(comm, parent)[0];
  trip.answered_s = clock.now_s();
  return trip;
}

RoundTrip shortest_round_trip(const Comm& comm, const RankClock& clock, int parent,
                              const PingPongLimits& limits) {
  RoundTrip shortest = first_round_trip(comm, clock, parent);
  const double end_s = shortest.answered_s + limits.max_s;
  for (int round = 0; round < limits.max_rounds; ++round) {
    const RoundTrip trip = ask_time(comm, clock, parent);
    if (trip.length_s() < shortest.length_s()) shortest = trip;
    if (round + 1 >= limits.min_rounds && trip.answered_s > end_s) break;
  }
  return shortest;
}

ClockAlignment align_to(const Comm& comm, const RankClock& clock, int parent,
                        const PingPongLimits& limits) {
  constexpr double kMaxDrift = kMaxDriftPpm * 1e-6;
  const RoundTrip trip = shortest_round_trip(comm, clock, parent, limits);
  send_question(comm, kAskAlignment, parent);
  const ClockAlignment above = receive_alignment(comm, parent);
  // Rank 0's clock is the axis and does not drift against it.
  const double parent_age_s = parent == 0 ? 0 : std::abs(trip.parent_s - above.own_s);
  return {.own_s = trip.middle_s(),
          .offset_s = trip.parent_s - trip.middle_s() + above.offset_s,
          .bound_s = trip.length_s() / 2 * (1 + kMaxDrift) + kReadingError_s + above.bound_s +
                     kMaxDrift * parent_age_s};
}

// Of the leaders by number: in round k those below 2^k, aligned by then, serve those 2^k above.
ClockAlignment align_leader(const Comm& comm, const std::vector<int>& leaders, unsigned own,
                            const RankClock& clock, const PingPongLimits& limits) {
  ClockAlignment alignment{.own_s = clock.now_s(), .offset_s = 0, .bound_s = 0};
  unsigned step = 1;
  if (own > 0) {
    const unsigned to_parent = std::bit_floor(own);
    alignment = align_to(comm, clock, leaders[own - to_parent], limits);
    step = 2 * to_parent;
  }
  for (; own + step < leaders.size(); step *= 2) {
    answer(comm, clock, alignment, leaders[own + step]);
  }
  return alignment;
}

}  // namespace

ClockDomains clock_domains(const std::vector<std::string>& keys) {
  ClockDomains domains;
  std::map<std::string, int> domain_of_key;
  for (std::size_t rank = 0; rank < keys.size(); ++rank) {
    const int next = domains.num_domains();
    const int domain =
        keys[rank].empty() ? next : domain_of_key.try_emplace(keys[rank], next).first->second;
    if (domain == next) domains.leaders.push_back(static_cast<int>(rank));
    domains.domain_of_rank.push_back(domain);
  }
  return domains;
}

void drop_contradicted_keys(const std::vector<BarrierTimes>& times,
                            std::vector<std::string>& keys) {
  struct Range {
    double last_entered_s = -std::numeric_limits<double>::infinity();
    double first_left_s = std::numeric_limits<double>::infinity();
  };
  std::map<std::string, Range> range_of_key;
  for (std::size_t rank = 0; rank < keys.size(); ++rank) {
    Range& range = range_of_key[keys[rank]];
    range.last_entered_s = std::max(range.last_entered_s, times[rank].entered_s);
    range.first_left_s = std::min(range.first_left_s, times[rank].left_s);
  }
  for (std::string& key : keys) {
    const Range& range = range_of_key[key];
    if (range.first_left_s < range.last_entered_s) key.clear();
  }
}

ClockDomains find_clock_domains(const Comm& comm, const RankClock& clock) {
  BarrierTimes own;
  own.entered_s = clock.now_s();
  comm.barrier();
  own.left_s = clock.now_s();
  const auto flat = comm.gather(std::span<const double>(std::array{own.entered_s, own.left_s}), 0);
  std::vector<BarrierTimes> times;
  for (std::size_t i = 0; i < flat.size(); i += 2) times.push_back({flat[i], flat[i + 1]});
  auto keys =
      comm.gather(clock.source == ClockSource::injected ? std::string() : own_clock_key(), 0);
  drop_contradicted_keys(times, keys);
  const ClockDomains at_root = clock_domains(keys);
  std::vector<std::int64_t> shared(static_cast<std::size_t>(comm.size()));
  std::copy(at_root.domain_of_rank.begin(), at_root.domain_of_rank.end(), shared.begin());
  comm.broadcast(std::span(shared), 0);
  ClockDomains domains;
  for (const std::int64_t domain : shared) {
    if (domain == domains.num_domains()) {
      domains.leaders.push_back(static_cast<int>(domains.domain_of_rank.size()));
    }
    domains.domain_of_rank.push_back(static_cast<int>(domain));
  }
  return domains;
}

ClockAlignment align_clocks(const Comm& comm, const ClockDomains& domains, const RankClock& clock,
                            const PingPongLimits& limits) {
  const int domain = domains.domain_of_rank.at(static_cast<std::size_t>(comm.rank()));
  const int leader = domains.leaders.at(static_cast<std::size_t>(domain));
  if (comm.rank() != leader) {
    if (leader == 0) return {.own_s = clock.now_s(), .offset_s = 0, .bound_s = 0};
    wait_for_turn(comm, leader);
    return receive_alignment(comm, leader);
  }
  PingPongLimits edge = limits;
  const auto last_leader = static_cast<unsigned>(domains.num_domains() - 1);
  const auto longest_path = static_cast<int>(std::bit_width(last_leader));
  edge.max_s /= std::max(1, longest_path);
  const ClockAlignment alignment =
      align_leader(comm, domains.leaders, static_cast<unsigned>(domain), clock, edge);
  if (leader == 0) return alignment;
  for (int rank = 0; rank < comm.size(); ++rank) {
    const bool member = domains.domain_of_rank[static_cast<std::size_t>(rank)] == domain;
    if (member && rank != leader) send_alignment(comm, alignment, rank);
  }
  return alignment;
}

}  // namespace epsweep
