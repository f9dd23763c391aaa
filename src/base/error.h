// What can go wrong, and the exit code each kind ends the program with.
#pragma once

#include <stdexcept>
#include <string>

namespace epsweep {

// A process ended by signal N exits with 128 + N, as shells expect.
enum class ExitCode : int {
  ok = 0,            // every requested point measured and verified
  config = 2,        // the user's input is wrong; nothing was measured
  verification = 3,  // at least one point failed or could not finish its check
  incomplete = 4,    // at least one point was skipped or stopped by a limit
  failure = 5,       // run-time failure
  regression = 6,    // a comparison found what --fail-on names
};

// The message is one complete line for the user.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

class ConfigError : public Error {
 public:
  explicit ConfigError(const std::string& message) : Error(ExitCode::config, message) {}
};

class RunError : public Error {
 public:
  explicit RunError(const std::string& message) : Error(ExitCode::failure, message) {}
};

// Throws RunError naming the broken contract; never returns.
[[noreturn]] void contract_broken(const char* condition, const char* file, int line,
                                  const std::string& message);

}  // namespace epsweep

// A programmer's contract, checked in every build; keep it out of timed loops.
#define EPS_EXPECT(condition, message)                                                       \
  do {                                                                                       \
    if (!(condition)) ::epsweep::contract_broken(#condition, __FILE__, __LINE__, (message)); \
  } while (false)
