#include "hostcuda/left_out.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <set>
#include <string_view>

#include <dlfcn.h>
#include <execinfo.h>

namespace hostcuda {
namespace {

// Whoever calls these is the one who waits. As the linker spells them; programs that leave waits
// out are linked with their symbols (ENABLE_EXPORTS).
constexpr std::string_view kForwarders[] = {"CudaLane11synchronize", "NcclComm10wait_ready"};

struct LeftOut {
  std::set<std::string> seen;
  std::string text;
  std::string place;
  long long nth = 0, of = 1, asked = 0;
};

LeftOut& left_out() {
  static LeftOut& instance = *new LeftOut;
  return instance;
}

bool forwards(const char* symbol) {
  if (symbol == nullptr) return false;
  for (const std::string_view name : kForwarders) {
    if (std::string_view(symbol).find(name) != std::string_view::npos) return true;
  }
  return false;
}

// Frames 0 and 1 are this file's, frame 2 is the double's.
__attribute__((noinline)) std::string place_of_caller() {
  std::array<void*, 8> frames;
  const int count = backtrace(frames.data(), static_cast<int>(frames.size()));
  for (int i = 3; i < count; ++i) {
    Dl_info info{};
    if (dladdr(frames[static_cast<std::size_t>(i)], &info) == 0) continue;
    if (forwards(info.dli_sname)) continue;
    const auto at = reinterpret_cast<std::uintptr_t>(frames[static_cast<std::size_t>(i)]) -
                    reinterpret_cast<std::uintptr_t>(info.dli_fbase);
    std::array<char, 32> text;
    std::snprintf(text.data(), text.size(), "%zx", static_cast<std::size_t>(at));
    return text.data();
  }
  return "?";
}

const char* name_of(Wait wait) {
  if (wait == Wait::host) return "host ";
  return wait == Wait::stream ? "stream " : "nccl ";
}

}  // namespace

__attribute__((noinline)) bool is_left_out(Wait wait) {
  LeftOut& own = left_out();
  const std::string place = name_of(wait) + place_of_caller();
  own.seen.insert(place);
  return place == own.place && own.asked++ % own.of == own.nth;
}

std::vector<std::string> seen_waits() {
  return {left_out().seen.begin(), left_out().seen.end()};
}

void leave_out(const std::string& wait) {
  LeftOut& own = left_out();
  own.nth = own.asked = 0;
  own.of = 1;
  own.place = own.text = wait;
  const std::size_t slash = wait.find('/');
  if (slash == std::string::npos) return;
  const std::size_t blank = wait.rfind(' ');
  own.place = wait.substr(0, blank);
  own.nth = std::stoll(wait.substr(blank + 1, slash - blank - 1));
  own.of = std::stoll(wait.substr(slash + 1));
}

NothingLeftOut::NothingLeftOut() : before_(left_out().text) {
  leave_out("");
}
NothingLeftOut::~NothingLeftOut() {
  leave_out(before_);
}

}  // namespace hostcuda
