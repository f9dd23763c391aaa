// Warnings and errors for people, on stderr. Results never pass through here.
#pragma once

#include <string>

namespace epsweep::log {

void warn(const std::string& message);
void error(const std::string& message);

}  // namespace epsweep::log
