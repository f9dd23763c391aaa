// What a command that starts MPI has around it on every rank.
#pragma once

#include <exception>

#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "mpi/environment.h"

namespace epsweep {

// The exit code of run(world). Configuration mistakes are agreed by all ranks, so one message is
// enough and nobody waits; after any other error the whole launch ends.
template <typename Run>
int in_world(const Run& run) {
  int argc = 0;
  char** argv = nullptr;
  const MpiEnvironment environment(argc, argv);
  const Comm& world = environment.world();
  try {
    return run(world);
  } catch (const ConfigError& error) {
    if (world.rank() == 0) log::error(error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    log::error(fmt::format("rank {} of {}: {}", world.rank(), world.size(), error.what()));
    abort_world(static_cast<int>(ExitCode::failure));
  }
}

}  // namespace epsweep
