// SIGINT and SIGTERM as a wish that all ranks agree on, instead of an end in the middle.
#pragma once

namespace epsweep {

// From now on the first SIGINT or SIGTERM is only noted; a second one ends the process.
void note_signals();
// Number of the signal noted; 0 for none.
int noted_signal();

}  // namespace epsweep
