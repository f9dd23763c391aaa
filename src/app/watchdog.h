// Ends a launch in which some rank no longer makes progress: nobody else notices a hang.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace epsweep {

class Watchdog {
 public:
  // `on_expiry` gets "phase (point)" once the current phase has lasted longer than `limit_s`; it
  // runs on the watchdog's thread and is expected to end the process. limit_s <= 0: never.
  Watchdog(double limit_s, std::function<void(const std::string& where)> on_expiry);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // A new phase starts and its time begins to run.
  void enter(const std::string& where);
  // Until the next enter(), any time is fine: this rank waits for others, which watch themselves.
  void rest();

 private:
  void watch();

  const double limit_s_;
  const std::function<void(const std::string&)> on_expiry_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string where_ = "start";
  double since_s_ = 0;
  bool resting_ = false;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace epsweep
