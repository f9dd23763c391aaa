#include "hostcuda/stream_queue.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

#include <sched.h>

#include "hostcuda/block.h"
#include "hostcuda/capture.h"

namespace hostcuda {
namespace {

// One in so many steps lets another stream run ahead. Choosing anew for every step would never
// leave a stream far behind.
constexpr unsigned kSteadiness = 12;

struct Queue {
  cudaStream_t stream = nullptr;  // null once closed
  std::deque<Step> steps;
  unsigned long long priority = 0;
};

struct LateStep {
  cudaStream_t stream;
  Step step;
};

struct Device {
  // In order of their first use, so that a seed means the same in every run.
  std::vector<std::unique_ptr<Queue>> queues;
  std::vector<LateStep> late;
  std::mt19937_64 choice;
  unsigned quick_percent = 0;  // of enqueued steps are followed by running one
  long long steps = 0;
  std::chrono::duration<double> patience{60};
};

void seed_device(Device& device, unsigned long long seed) {
  constexpr unsigned kQuickness[] = {0, 50, 97};
  device.choice.seed(seed);
  device.quick_percent = kQuickness[seed % std::size(kQuickness)];
  for (const auto& queue : device.queues) queue->priority = device.choice();
  set_thread_seed(seed);
}

Device& device() {
  static Device& instance = *[] {
    // Never destroyed: streams of static lifetime are closed after everything else.
    auto* made = new Device;
    const char* seed = std::getenv("HOSTCUDA_SEED");
    seed_device(*made, seed == nullptr ? 1 : std::strtoull(seed, nullptr, 10));
    return made;
  }();
  return instance;
}

Queue* find(cudaStream_t stream) {
  for (const auto& queue : device().queues) {
    if (queue->stream == stream) return queue.get();
  }
  return nullptr;
}

Queue& queue_of(cudaStream_t stream) {
  if (Queue* found = find(stream)) return *found;
  device().queues.push_back(std::make_unique<Queue>());
  device().queues.back()->stream = stream;
  device().queues.back()->priority = device().choice();
  return *device().queues.back();
}

void drop_closed() {
  std::erase_if(device().queues, [](const std::unique_ptr<Queue>& queue) {
    return queue->stream == nullptr && queue->steps.empty();
  });
}

std::vector<Queue*> busy_by_priority() {
  std::vector<Queue*> busy;
  for (const auto& queue : device().queues) {
    if (!queue->steps.empty()) busy.push_back(queue.get());
  }
  if (!busy.empty() && device().choice() % kSteadiness == 0) {
    busy[device().choice() % busy.size()]->priority = device().choice();
  }
  std::ranges::sort(busy, std::greater<>(), &Queue::priority);
  return busy;
}

// The first step of the foremost stream that can go on. Returns whether there was one.
bool try_step() {
  for (Queue* queue : busy_by_priority()) {
    Step step = std::move(queue->steps.front());
    queue->steps.pop_front();
    if (step() == Progress::waiting) {
      queue->steps.push_front(std::move(step));
      continue;
    }
    ++device().steps;
    drop_closed();
    return true;
  }
  return false;
}

template <typename Done>
void run_until(const Done& done) {
  launch_late();
  auto last_progress = std::chrono::steady_clock::now();
  while (!done()) {
    if (try_step()) {
      last_progress = std::chrono::steady_clock::now();
    } else if (std::chrono::steady_clock::now() - last_progress > device().patience) {
      throw std::logic_error("streams wait for each other, or for a rank that does not come");
    } else {
      sched_yield();
    }
  }
}

}  // namespace

void enqueue(cudaStream_t stream, Step step) {
  if (stream == nullptr) throw std::logic_error("work on the legacy default stream");
  if (capture_step(stream, step)) return;
  queue_of(stream).steps.push_back(std::move(step));
  while (device().quick_percent > 0 && device().choice() % 100 < device().quick_percent) {
    if (!try_step()) break;
  }
}

void enqueue_late(cudaStream_t stream, Step step) {
  device().late.push_back({stream, std::move(step)});
}

void launch_late() {
  std::vector<LateStep> late;
  late.swap(device().late);
  for (LateStep& one : late) enqueue(one.stream, std::move(one.step));
}

void drain(cudaStream_t stream) {
  run_until([stream] {
    const Queue* queue = find(stream);
    return queue == nullptr || queue->steps.empty();
  });
}

void drain_all() {
  run_until([] { return num_queued() == 0; });
}

void close(cudaStream_t stream) {
  if (Queue* queue = find(stream)) queue->stream = nullptr;
  drop_closed();
}

std::size_t num_queued() {
  std::size_t count = device().late.size();
  for (const auto& queue : device().queues) count += queue->steps.size();
  return count;
}

void set_seed(unsigned long long seed) {
  seed_device(device(), seed);
}

void set_patience(double seconds) {
  device().patience = std::chrono::duration<double>(seconds);
}

double clock_s() {
  return static_cast<double>(device().steps) * 1e-6;
}

}  // namespace hostcuda
