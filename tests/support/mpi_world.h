// For tests that run as several ranks (tests/support/mpi_main.cc).
#pragma once

#include "mpi/comm.h"

namespace epsweep {

// All ranks of the test. Every rank runs the same tests in the same order. A failed ASSERT leaves
// only the rank it failed on; where others communicate afterwards, use EXPECT.
const Comm& mpi_world();

}  // namespace epsweep
