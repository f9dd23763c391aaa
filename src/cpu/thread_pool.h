// The threads of one rank.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace epsweep {

// The caller is worker 0; num_threads - 1 threads wait for work, blocked rather than spinning:
// ranks share cores, and a spinning one steals the time of the rank it waits for.
class ThreadPool {
 public:
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return static_cast<int>(threads_.size()) + 1; }

  // Calls function(item, worker) once for every item in [0, num_items), items in ascending order
  // to whoever is free, and returns when all are done. Allocates nothing. The first exception
  // stops further items and is rethrown here. Neither reentrant nor callable by two threads.
  template <typename Function>
  void run(std::int64_t num_items, Function&& function) {
    if (threads_.empty() || num_items <= 1) {
      for (std::int64_t item = 0; item < num_items; ++item) function(item, 0);
      return;
    }
    using Callable = std::remove_reference_t<Function>;
    const Task task = [](void* context, std::int64_t item, int worker) {
      (*static_cast<Callable*>(context))(item, worker);
    };
    run_task(num_items, task, const_cast<void*>(static_cast<const void*>(&function)));
  }

 private:
  using Task = void (*)(void* context, std::int64_t item, int worker);
  void run_task(std::int64_t num_items, Task task, void* context);
  void wait_for_work(int worker);
  void take_items(int worker);

  std::mutex mutex_;
  std::condition_variable work_arrived_, work_done_;
  std::uint64_t round_ = 0;  // guarded by mutex_, as are the next three
  int busy_ = 0;
  bool stopping_ = false;
  std::exception_ptr failure_;
  // Written before a round starts, read only during it.
  Task task_ = nullptr;
  void* context_ = nullptr;
  std::int64_t num_items_ = 0;
  alignas(64) std::atomic<std::int64_t> next_item_{0};
  std::vector<std::thread> threads_;
};

}  // namespace epsweep
