#include "hostcuda/stream_queue.h"

#include <chrono>
#include <deque>
#include <map>
#include <random>
#include <stdexcept>
#include <vector>

#include <sched.h>

#include "hostcuda/block.h"
#include "hostcuda/capture.h"

namespace hostcuda {
namespace {

// Longer than any exchange between ranks of one machine takes.
constexpr std::chrono::seconds kPatience(60);

struct Device {
  std::map<cudaStream_t, std::deque<Step>> queues;
  std::mt19937_64 choice{1};
  long long steps = 0;
};

Device& device() {
  static Device instance;
  return instance;
}

// One attempt at a random stream's first step. Returns whether it was finished.
bool try_step() {
  std::vector<cudaStream_t> busy;
  for (const auto& [stream, queue] : device().queues) {
    if (!queue.empty()) busy.push_back(stream);
  }
  if (busy.empty()) return false;
  std::deque<Step>& queue = device().queues[busy[device().choice() % busy.size()]];
  Step step = std::move(queue.front());
  queue.pop_front();
  if (step() == Progress::waiting) {
    queue.push_front(std::move(step));
    return false;
  }
  ++device().steps;
  return true;
}

template <typename Done>
void run_until(const Done& done) {
  auto last_progress = std::chrono::steady_clock::now();
  while (!done()) {
    if (try_step()) {
      last_progress = std::chrono::steady_clock::now();
    } else if (std::chrono::steady_clock::now() - last_progress > kPatience) {
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
  device().queues[stream].push_back(std::move(step));
}

void drain(cudaStream_t stream) {
  run_until([stream] { return device().queues[stream].empty(); });
}

void drain_all() {
  run_until([] {
    for (const auto& [stream, queue] : device().queues) {
      if (!queue.empty()) return false;
    }
    return true;
  });
}

void set_seed(unsigned long long seed) {
  device().choice.seed(seed);
  set_thread_seed(seed);
}

double clock_s() {
  return static_cast<double>(device().steps) * 1e-6;
}

}  // namespace hostcuda
