#include "app/signals.h"

#include <csignal>

namespace epsweep {
namespace {

volatile std::sig_atomic_t noted = 0;

void note(int number) {
  noted = number;
  std::signal(number, SIG_DFL);
}

}  // namespace

void note_signals() {
  std::signal(SIGINT, note);
  std::signal(SIGTERM, note);
}

int noted_signal() {
  return static_cast<int>(noted);
}

}  // namespace epsweep
