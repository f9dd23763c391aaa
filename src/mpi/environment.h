// MPI start and end of a rank process.
#pragma once

#include <string>

#include "mpi/comm.h"

namespace epsweep {

// Initializes MPI on construction and finalizes on destruction; the first object of the run
// command, so that everything that communicates dies before it. Requests MPI_THREAD_FUNNELED: only
// the main thread communicates. Errors of MPI calls return codes, which Comm turns into RunError.
class MpiEnvironment {
 public:
  MpiEnvironment(int& argc, char**& argv);
  ~MpiEnvironment();
  MpiEnvironment(const MpiEnvironment&) = delete;
  MpiEnvironment& operator=(const MpiEnvironment&) = delete;

  const Comm& world() const { return world_; }

 private:
  Comm world_;
};

// Ends all ranks with this exit code; usable from any thread as a last resort. Never returns.
[[noreturn]] void abort_world(int exit_code);

// Why the launch looks broken: the launcher's variables (SLURM_NTASKS, OMPI_COMM_WORLD_SIZE,
// PMI_SIZE) name more than one process but MPI sees one; empty if it looks right.
std::string launch_problem(int world_size);

// Whether a launcher that started several processes started this one; before MPI is.
bool launched_with_ranks();

// "Open MPI v4.1.4 ..." on one line.
std::string mpi_library_version();

}  // namespace epsweep
