// Progress and warnings for people, on stderr. Results never pass through here.
#pragma once

#include <string>

namespace epsweep::log {

enum class Level { info, warning, error };

// Messages below the level are dropped; ranks other than 0 are set to warning.
void set_level(Level level);
// Put in front of every message, e.g. "rank 3"; empty for none.
void set_prefix(const std::string& prefix);

void info(const std::string& message);
void warn(const std::string& message);
void error(const std::string& message);

}  // namespace epsweep::log
