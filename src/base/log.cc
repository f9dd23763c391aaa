#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace epsweep::log {
namespace {

spdlog::logger& logger() {
  static const auto instance = [] {
    auto made = spdlog::stderr_color_mt("epsweep");
    made->set_pattern("%^%l%$: %v");
    return made;
  }();
  return *instance;
}

}  // namespace

// The message is an argument, never the format: user text may contain braces.
void warn(const std::string& message) {
  logger().warn("{}", message);
}
void error(const std::string& message) {
  logger().error("{}", message);
}

}  // namespace epsweep::log
