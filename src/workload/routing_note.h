// What a routing has to say about itself beyond the traces it makes.
#pragma once

#include <string>

namespace epsweep {

// A note tells how something was read; a warning says that it may not be what was meant.
struct RoutingNote {
  enum class Kind { note, warning };
  Kind kind = Kind::note;
  std::string text;  // one line
};

}  // namespace epsweep
