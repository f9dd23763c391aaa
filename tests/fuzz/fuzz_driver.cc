// A bounded run of a fuzz target without libFuzzer: its seeds, then mutations of them that are the
// same on every machine. "--write-seeds DIR" writes the seeds for libFuzzer instead.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <new>
#include <string>
#include <vector>

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include "base/random.h"
#include "fuzz/fuzz_target.h"

namespace {

constexpr std::size_t kMaxBlock = 256U << 20, kMaxLive = 1024U << 20;
constexpr unsigned kHangSeconds = 20;
constexpr const char* kCrashFile = "fuzz-crash.bin";

std::size_t live_bytes = 0;
std::string current_input;

[[noreturn]] void give_up(const char* what) {
  std::fprintf(stderr, "fuzz: %s; the input is in %s\n", what, kCrashFile);
  std::abort();
}

void* counted(std::size_t size) {
  if (size > kMaxBlock) give_up("one allocation above 256 MiB");
  void* block = std::malloc(size == 0 ? 1 : size);
  if (block == nullptr) give_up("out of memory");
  live_bytes += malloc_usable_size(block);
  if (live_bytes > kMaxLive) give_up("more than 1 GiB allocated");
  return block;
}

void keep_input(int signal_number) {
  const int file = ::open(kCrashFile, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file >= 0) {
    [[maybe_unused]] const auto written = ::write(file, current_input.data(), current_input.size());
    ::close(file);
  }
  ::signal(signal_number, SIG_DFL);
  ::raise(signal_number);
}

}  // namespace

void* operator new(std::size_t size) {
  return counted(size);
}
void* operator new[](std::size_t size) {
  return counted(size);
}
void operator delete(void* block) noexcept {
  if (block != nullptr) live_bytes -= malloc_usable_size(block);
  std::free(block);
}
void operator delete[](void* block) noexcept {
  operator delete(block);
}
void operator delete(void* block, std::size_t) noexcept {
  operator delete(block);
}
void operator delete[](void* block, std::size_t) noexcept {
  operator delete(block);
}

namespace epsweep {
namespace {

constexpr std::array<const char*, 26> kWords = {"-1",
                                                "0",
                                                "18446744073709551615",
                                                "9223372036854775808",
                                                "1e999",
                                                "NaN",
                                                "null",
                                                "[",
                                                "]",
                                                "{",
                                                "}",
                                                "\"",
                                                ":",
                                                ",",
                                                "\n",
                                                "&a ",
                                                "*a ",
                                                "- ",
                                                "\\u0000",
                                                "\\ud800",
                                                "\xff\xff",
                                                "[[[[[[[[",
                                                "true",
                                                "2147483648",
                                                "0.5",
                                                "__metadata__"};

// The choices of one input.
class Dice {
 public:
  explicit Dice(std::uint64_t input) : stream_(1, Stream::test, input) {}
  std::size_t below(std::size_t bound) {
    return stream_.below(next_++, std::max<std::size_t>(bound, 1));
  }

 private:
  RandomStream stream_;
  std::uint64_t next_ = 0;
};

void mutate(Dice& dice, const std::vector<std::string>& seeds, std::string& text) {
  const std::size_t at = dice.below(text.size());
  const std::size_t length = std::min(1 + dice.below(16), text.size() - at);
  switch (dice.below(8)) {
    case 0:
      if (!text.empty()) text[at] = static_cast<char>(text[at] ^ (1 << dice.below(8)));
      break;
    case 1:
      if (!text.empty()) text[at] = static_cast<char>(dice.below(256));
      break;
    case 2:
      text.erase(at, length);
      break;
    case 3:
      text.insert(dice.below(text.size()), text.substr(at, length * (1 + dice.below(8))));
      break;
    case 4:
      text.replace(at, length, kWords[dice.below(kWords.size())]);
      break;
    case 5:
      text.insert(at, kWords[dice.below(kWords.size())]);
      break;
    case 6:
      text.resize(at);
      break;
    default: {
      const std::string& other = seeds[dice.below(seeds.size())];
      text = text.substr(0, at) + other.substr(dice.below(other.size()));
    }
  }
}

void try_input(const std::string& input) {
  current_input = input;
  ::alarm(kHangSeconds);
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(current_input.data()),
                         current_input.size());
  ::alarm(0);
}

void write_seeds(const std::vector<std::string>& seeds, const std::string& folder) {
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    std::ofstream(folder + "/seed" + std::to_string(i), std::ios::binary) << seeds[i];
  }
}

}  // namespace
}  // namespace epsweep

int main(int argc, char** argv) {
  using namespace epsweep;
  const std::vector<std::string> seeds = fuzz_seeds();
  if (argc == 3 && std::string(argv[1]) == "--write-seeds") {
    write_seeds(seeds, argv[2]);
    return 0;
  }
  for (const int signal_number : {SIGABRT, SIGALRM, SIGSEGV, SIGFPE}) {
    ::signal(signal_number, keep_input);
  }
  const std::uint64_t num_inputs = argc == 2 ? std::strtoull(argv[1], nullptr, 10) : 3000;
  for (const std::string& seed : seeds) try_input(seed);
  for (std::uint64_t input = 0; input < num_inputs; ++input) {
    Dice dice(input);
    std::string text = seeds[dice.below(seeds.size())];
    const std::size_t times = 1 + dice.below(6);
    for (std::size_t i = 0; i < times; ++i) mutate(dice, seeds, text);
    try_input(text);
  }
  std::printf("%zu seeds and %llu mutations\n", seeds.size(),
              static_cast<unsigned long long>(num_inputs));
  return 0;
}
