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

std::string& prefix() {
  static std::string text;
  return text;
}

std::string prefixed(const std::string& message) {
  return prefix().empty() ? message : prefix() + ": " + message;
}

}  // namespace

void set_level(Level level) {
  logger().set_level(level == Level::info      ? spdlog::level::info
                     : level == Level::warning ? spdlog::level::warn
                                               : spdlog::level::err);
}

void set_prefix(const std::string& text) {
  prefix() = text;
}

// The message is an argument, never the format: user text may contain braces.
void info(const std::string& message) {
  logger().info("{}", prefixed(message));
}
void warn(const std::string& message) {
  logger().warn("{}", prefixed(message));
}
void error(const std::string& message) {
  logger().error("{}", prefixed(message));
}

}  // namespace epsweep::log
