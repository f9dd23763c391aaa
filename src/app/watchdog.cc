#include "app/watchdog.h"

#include <chrono>

#include "base/host_probe.h"

namespace epsweep {

Watchdog::Watchdog(double limit_s, std::function<void(const std::string&)> on_expiry)
    : limit_s_(limit_s), on_expiry_(std::move(on_expiry)), since_s_(monotonic_s()) {
  if (limit_s_ > 0) thread_ = std::thread([this] { watch(); });
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

// Does not wake the thread: the timed ranks' cores are busy. The thread looks again by itself.
void Watchdog::enter(const std::string& where) {
  const std::lock_guard lock(mutex_);
  where_ = where;
  since_s_ = monotonic_s();
  resting_ = false;
}

void Watchdog::rest() {
  const std::lock_guard lock(mutex_);
  resting_ = true;
}

void Watchdog::watch() {
  std::unique_lock lock(mutex_);
  while (!ended_) {
    const double left_s = resting_ ? limit_s_ : since_s_ + limit_s_ - monotonic_s();
    if (left_s <= 0) {
      const std::string where = where_;
      lock.unlock();
      on_expiry_(where);
      return;
    }
    changed_.wait_for(lock, std::chrono::duration<double>(left_s));
  }
}

}  // namespace epsweep
