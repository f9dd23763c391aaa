#include "mpi/environment.h"

#include <charconv>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string_view>

#include "base/error.h"

namespace epsweep {
namespace {

Comm started_world(int& argc, char**& argv) {
  int provided = MPI_THREAD_SINGLE;
  check_mpi(MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided), "starting MPI");
  check_mpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI's error handler");
  if (provided < MPI_THREAD_FUNNELED) {
    throw RunError("this MPI library does not allow threads beside the one that communicates");
  }
  return Comm::world();
}

bool mpi_is_running() {
  int initialized = 0, finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  return initialized != 0 && finalized == 0;
}

// Absent where the variable is unset or not a count.
std::optional<int> count_in_environment(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  const std::string_view view(text);
  int count = 0;
  const auto parsed = std::from_chars(view.data(), view.data() + view.size(), count);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == view.data() + view.size();
  return whole && count > 0 ? std::optional(count) : std::nullopt;
}

}  // namespace

MpiEnvironment::MpiEnvironment(int& argc, char**& argv) : world_(started_world(argc, argv)) {}

// While an exception is on its way, other ranks may be anywhere and MPI_Finalize would wait for
// them; the catcher calls abort_world().
MpiEnvironment::~MpiEnvironment() {
  if (std::uncaught_exceptions() == 0 && mpi_is_running()) MPI_Finalize();
}

void abort_world(int exit_code) {
  if (mpi_is_running()) MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);
}

std::string launch_problem(int world_size) {
  struct Launcher {
    const char *variable, *name, *remedy;
  };
  static constexpr Launcher kLaunchers[] = {
      {"OMPI_COMM_WORLD_SIZE", "mpirun", "the mpirun of the MPI library epsweep is linked with"},
      {"SLURM_NTASKS", "Slurm", "srun --mpi=pmix, or with mpirun"},
      {"PMI_SIZE", "the launcher", "the mpirun of the MPI library epsweep is linked with"}};
  // An `mpirun -np 1` inside a larger Slurm allocation is meant.
  if (world_size != 1 || count_in_environment("OMPI_COMM_WORLD_SIZE") == 1) return "";
  for (const Launcher& launcher : kLaunchers) {
    const int named = count_in_environment(launcher.variable).value_or(1);
    if (named > 1) {
      return std::string("MPI sees 1 process and ") + launcher.name + " " + std::to_string(named) +
             " (" + launcher.variable + "): start with " + launcher.remedy;
    }
  }
  return "";
}

bool launched_with_ranks() {
  // Not SLURM_NTASKS, which a batch script has too: SLURM_STEP_NUM_TASKS is of what srun started.
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    if (count_in_environment(variable).value_or(1) > 1) return true;
  }
  return false;
}

std::string mpi_library_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  check_mpi(MPI_Get_library_version(text, &length), "version of the MPI library");
  std::string line(text);
  for (char& letter : line) {
    if (letter == '\n' || letter == '\r' || letter == '\t') letter = ' ';
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace epsweep
