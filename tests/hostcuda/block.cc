#include "hostcuda/block.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <ucontext.h>

// Present where the program is built with -fsanitize=address: it must know which stack is in use.
extern "C" {
void __sanitizer_start_switch_fiber(void** save, const void* bottom, std::size_t size)
    __attribute__((weak));
void __sanitizer_finish_switch_fiber(void* save, const void** bottom, std::size_t* size)
    __attribute__((weak));
}

namespace hostcuda {
namespace {

constexpr std::size_t kStackBytes = 128 << 10;
constexpr std::size_t kRedZone = 64;
constexpr unsigned char kPoison = 0xff, kGuard = 0xa5;
constexpr int kWarp = 32;

enum class State { ready, at_block_barrier, at_warp_barrier, finished };

struct Fiber {
  ucontext_t context;
  State state = State::ready;
  uint3 index;
};

struct SharedObject {
  std::unique_ptr<unsigned char[]> memory;
  std::size_t bytes = 0;
};

struct Block {
  std::vector<Fiber> fibers;
  std::vector<unsigned long long> slots;  // [fibers], exchange slots of warps
  std::map<const void*, SharedObject> shared;
  const std::function<void()>* thread = nullptr;
  ucontext_t scheduler;
  std::size_t current = 0;
  void* scheduler_stack_save = nullptr;
  const void* scheduler_stack = nullptr;
  std::size_t scheduler_stack_bytes = 0;
  std::exception_ptr error;
};

thread_local Block* running = nullptr;
thread_local std::mt19937_64 order(1);

// Stacks are kept: making them anew for each block would take most of the time.
std::vector<std::unique_ptr<char[]>>& stacks() {
  static thread_local std::vector<std::unique_ptr<char[]>> kept;
  return kept;
}

void switch_to_scheduler(bool for_good) {
  Block& block = *running;
  Fiber& fiber = block.fibers[block.current];
  void* save = nullptr;
  if (__sanitizer_start_switch_fiber != nullptr) {
    __sanitizer_start_switch_fiber(for_good ? nullptr : &save, block.scheduler_stack,
                                   block.scheduler_stack_bytes);
  }
  swapcontext(&fiber.context, &block.scheduler);
  if (__sanitizer_finish_switch_fiber != nullptr) {
    __sanitizer_finish_switch_fiber(save, nullptr, nullptr);
  }
}

void fiber_main() {
  Block& block = *running;
  if (__sanitizer_finish_switch_fiber != nullptr) {
    __sanitizer_finish_switch_fiber(nullptr, &block.scheduler_stack, &block.scheduler_stack_bytes);
  }
  try {
    (*block.thread)();
  } catch (...) {
    block.error = std::current_exception();
  }
  block.fibers[block.current].state = State::finished;
  switch_to_scheduler(true);
}

void resume(Block& block, std::size_t at) {
  block.current = at;
  threadIdx = block.fibers[at].index;
  if (__sanitizer_start_switch_fiber != nullptr) {
    __sanitizer_start_switch_fiber(&block.scheduler_stack_save, stacks()[at].get(), kStackBytes);
  }
  swapcontext(&block.scheduler, &block.fibers[at].context);
  if (__sanitizer_finish_switch_fiber != nullptr) {
    __sanitizer_finish_switch_fiber(block.scheduler_stack_save, nullptr, nullptr);
  }
}

void prepare_fibers(Block& block, dim3 threads) {
  const std::size_t count = std::size_t{threads.x} * threads.y * threads.z;
  if (count == 0 || count > 1024) throw std::logic_error("a block of 0 or more than 1024 threads");
  while (stacks().size() < count) stacks().push_back(std::make_unique<char[]>(kStackBytes));
  block.fibers.resize(count);
  block.slots.assign((count + kWarp - 1) / kWarp * kWarp, 0);
  for (std::size_t i = 0; i < count; ++i) {
    Fiber& fiber = block.fibers[i];
    const auto n = static_cast<unsigned>(i);
    fiber.index = {n % threads.x, n / threads.x % threads.y, n / (threads.x * threads.y)};
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = stacks()[i].get();
    fiber.context.uc_stack.ss_size = kStackBytes;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, fiber_main, 0);
  }
}

// Lets threads [begin, end) go on if all that are alive wait at `barrier`.
bool release(Block& block, std::size_t begin, std::size_t end, State barrier) {
  end = std::min(end, block.fibers.size());
  bool any = false;
  for (std::size_t i = begin; i < end; ++i) {
    const State state = block.fibers[i].state;
    if (state == State::finished) continue;
    if (state != barrier) return false;
    any = true;
  }
  if (!any) return false;
  for (std::size_t i = begin; i < end; ++i) {
    if (block.fibers[i].state == barrier) block.fibers[i].state = State::ready;
  }
  return true;
}

bool release_any(Block& block) {
  bool released = false;
  for (std::size_t warp = 0; warp < block.fibers.size(); warp += kWarp) {
    released |= release(block, warp, warp + kWarp, State::at_warp_barrier);
  }
  return released || release(block, 0, block.fibers.size(), State::at_block_barrier);
}

void check_shared(const Block& block) {
  for (const auto& [key, object] : block.shared) {
    for (std::size_t i = 0; i < kRedZone; ++i) {
      if (object.memory[object.bytes + i] != kGuard) {
        throw std::logic_error("a block wrote behind its shared memory");
      }
    }
  }
}

void run_block(dim3 threads, const std::function<void()>& thread) {
  Block block;
  block.thread = &thread;
  running = &block;
  prepare_fibers(block, threads);
  std::vector<std::size_t> turn(block.fibers.size());
  for (std::size_t i = 0; i < turn.size(); ++i) turn[i] = i;
  for (;;) {
    std::ranges::shuffle(turn, order);
    for (const std::size_t i : turn) {
      if (block.fibers[i].state == State::ready) resume(block, i);
      if (block.error) std::rethrow_exception(block.error);
    }
    const auto alive = std::ranges::count_if(
        block.fibers, [](const Fiber& fiber) { return fiber.state != State::finished; });
    if (alive == 0) break;
    if (!release_any(block)) {
      throw std::logic_error("a barrier that only some threads of a block reach");
    }
  }
  check_shared(block);
  running = nullptr;
}

}  // namespace

void run_grid(dim3 blocks, dim3 threads, const std::function<void()>& thread) {
  gridDim = blocks;
  blockDim = threads;
  for (unsigned z = 0; z < blocks.z; ++z) {
    for (unsigned y = 0; y < blocks.y; ++y) {
      for (unsigned x = 0; x < blocks.x; ++x) {
        blockIdx = {x, y, z};
        run_block(threads, thread);
      }
    }
  }
}

void set_thread_seed(unsigned long long seed) {
  order.seed(seed);
}

void* shared_memory(const void* key, std::size_t bytes) {
  SharedObject& object = running->shared[key];
  if (object.memory == nullptr) {
    object.memory = std::make_unique<unsigned char[]>(bytes + kRedZone);
    object.bytes = bytes;
    std::memset(object.memory.get(), kPoison, bytes);
    std::memset(object.memory.get() + bytes, kGuard, kRedZone);
  }
  return object.memory.get();
}

void wait_at(Barrier barrier) {
  running->fibers[running->current].state =
      barrier == Barrier::block ? State::at_block_barrier : State::at_warp_barrier;
  switch_to_scheduler(false);
  threadIdx = running->fibers[running->current].index;
}

int lane() {
  return static_cast<int>(running->current % kWarp);
}

unsigned long long* warp_slots() {
  return running->slots.data() + running->current / kWarp * kWarp;
}

}  // namespace hostcuda
