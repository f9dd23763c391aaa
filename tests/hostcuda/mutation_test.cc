// Every wait of src/cuda and src/pipeline is needed, and every count: without one of them something
// notices. Mistakes are made by the doubles while hostcuda_mutants runs.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "base/text.h"
#include "device/transport.h"
#include "support/program.h"

namespace epsweep {
namespace {

// Ranks that are ended leave their shared memory behind; here it goes with the directory.
ProgramResult run_mutants(int ranks, const std::string& arguments) {
  const TempDir dir;
  const std::string line = fmt::format(
      "ulimit -c 0; OMPI_MCA_btl_vader_backing_directory={} timeout -k 5 200 mpirun -np {} {} {} "
      ">{} 2>{} </dev/null",
      dir.path(""), ranks, EPSWEEP_MUTANTS, arguments, dir.path("out"), dir.path("err"));
  const int status = std::system(line.c_str());
  return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          .out = read_text_file(dir.path("out")),
          .err = read_text_file(dir.path("err"))};
}

struct PlaceOfWait {
  std::string turn, wait;
};

const std::vector<PlaceOfWait>& waits() {
  static const std::vector<PlaceOfWait> all = [] {
    const ProgramResult result = run_mutants(2, "list");
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    std::vector<PlaceOfWait> places;
    std::istringstream lines(result.out);
    for (std::string line; std::getline(lines, line);) {
      const std::size_t blank = line.find(' ');
      if (blank != std::string::npos) {
        places.push_back({line.substr(0, blank), line.substr(blank + 1)});
      }
    }
    return places;
  }();
  return all;
}

// What noticed it, for the log: a line of the program, or the signal that ended a rank.
void expect_caught(const std::string& mutation, const ProgramResult& result) {
  EXPECT_NE(result.exit_code, 0) << "nothing notices: " << mutation;
  EXPECT_NE(result.exit_code, 124) << "no end: " << mutation << '\n' << result.err;
  const std::size_t at = result.out.find("caught on rank");
  const std::string by = at == std::string::npos
                             ? "a rank that ended by a signal"
                             : result.out.substr(at, result.out.find('\n', at) - at);
  std::printf("%s: %s\n", mutation.c_str(), by.c_str());
}

TEST(Mutation, every_wait_is_needed) {
  EXPECT_GE(waits().size(), 15U);
  for (const auto& [turn, wait] : waits()) {
    expect_caught(wait, run_mutants(2, fmt::format("leave_out {} '{}'", turn, wait)));
  }
}

// A loop of waits is one place; leaving out one of its three rounds must show too.
TEST(Mutation, every_round_of_a_wait_on_forked_streams_is_needed) {
  for (const auto& [turn, wait] : waits()) {
    if (!wait.starts_with("stream ")) continue;
    for (int round = 0; round < 3; ++round) {
      const std::string one = fmt::format("{} {}/3", wait, round);
      expect_caught(one, run_mutants(2, fmt::format("leave_out {} '{}'", turn, one)));
    }
  }
}

TEST(Mutation, swapped_send_counts_are_noticed) {
  for (const std::string& transport : TransportCatalog::instance().names()) {
    if (TransportCatalog::instance().at(transport).backend != "cuda") continue;
    int caught = 0;
    for (const char* unit : {"assignment", "rank"}) {
      const ProgramResult whole = run_mutants(4, fmt::format("swap {} {} none", transport, unit));
      EXPECT_EQ(whole.exit_code, 0) << whole.out << whole.err;
      for (const char* what : {"counts", "dispatch", "combine"}) {
        const std::string swap = fmt::format("swap {} {} {}", transport, unit, what);
        const ProgramResult result = run_mutants(4, swap);
        if (result.out.find("cannot run") != std::string::npos) continue;
        expect_caught(swap, result);
        ++caught;
      }
    }
    EXPECT_GE(caught, 1) << transport;
  }
}

}  // namespace
}  // namespace epsweep
