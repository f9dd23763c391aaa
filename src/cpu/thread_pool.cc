#include "cpu/thread_pool.h"

#include <utility>

#include "base/error.h"

namespace epsweep {

ThreadPool::ThreadPool(int num_threads) {
  EPS_EXPECT(num_threads >= 1, "a thread pool needs at least one thread");
  threads_.reserve(static_cast<std::size_t>(num_threads - 1));
  for (int worker = 1; worker < num_threads; ++worker) {
    threads_.emplace_back([this, worker] { wait_for_work(worker); });
  }
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_arrived_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::take_items(int worker) {
  try {
    for (;;) {
      const std::int64_t item = next_item_.fetch_add(1, std::memory_order_relaxed);
      if (item >= num_items_) return;
      task_(context_, item, worker);
    }
  } catch (...) {
    next_item_.store(num_items_, std::memory_order_relaxed);
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
  }
}

void ThreadPool::run_task(std::int64_t num_items, Task task, void* context) {
  {
    const std::lock_guard lock(mutex_);
    task_ = task;
    context_ = context;
    num_items_ = num_items;
    next_item_.store(0, std::memory_order_relaxed);
    busy_ = static_cast<int>(threads_.size());
    ++round_;
  }
  work_arrived_.notify_all();
  take_items(0);
  std::unique_lock lock(mutex_);
  work_done_.wait(lock, [this] { return busy_ == 0; });
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void ThreadPool::wait_for_work(int worker) {
  std::uint64_t finished = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    work_arrived_.wait(lock, [&] { return stopping_ || round_ != finished; });
    if (stopping_) return;
    finished = round_;
    lock.unlock();
    take_items(worker);
    lock.lock();
    if (--busy_ == 0) work_done_.notify_one();
  }
}

}  // namespace epsweep
