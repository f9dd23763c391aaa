// How close expert_ffn comes to what this machine can do, with every kernel of the CPU. Weights are
// cold (flushed, then swept in order). A cell is one shape and number of rows per expert; in each
// of its rounds all kernels run once between two measurements of the roofs, because the machine's
// speed drifts: compare ratios within a round, not rates of different ones.
//   read    plain read of as many cold bytes as the weights have
//   square  2048 x 2048 x 2048 with amx, warm
//   plain   oneDNN as it comes: its own layout, one call per expert and matrix, its own threads,
//           the same cold weights; products only, while a kernel's time has the activation in it
// With one thread all times are CPU seconds, which other load on the core does not lengthen; with
// more they are wall seconds.
//
//   ffn_bench [--shape olmoe|deepseek-v2-lite|deepseek-v3|all] [--rows 1,8,128] [--rounds 3]
//             [--threads 1] [--kernels amx,auto_cpu,onednn,loop,padded] [--csv 1]
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/host_probe.h"
#include "base/random.h"
#include "cpu/cache_flush.h"
#include "cpu/thread_pool.h"
#include "device/backend.h"
#include "device/grouped_gemm.h"
#include "plain_onednn.h"

namespace epsweep {
namespace {

struct Shape {
  std::string name;
  std::int64_t hidden = 0, ffn = 0;
  int experts = 0;  // DeepSeek-V3: as many as make 700 MB
  std::int64_t weight_elements() const { return 3 * hidden * ffn * experts; }
};
const std::vector<Shape> kShapes = {{"olmoe", 2048, 1024, 64},
                                    {"deepseek-v2-lite", 2048, 1408, 64},
                                    {"deepseek-v3", 7168, 2048, 8}};

struct Options {
  std::string shape = "all";
  std::vector<std::string> kernels = {"amx", "auto_cpu", "onednn", "loop", "padded"};
  std::vector<std::int64_t> rows = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512};
  int rounds = 3, threads = 1;
  bool csv = false;
};

// One round of one cell; GFLOP/s but for the read.
struct Round {
  double read_gbs = 0, square = 0, plain = 0;
  std::vector<double> kernels, activation_share;
};

// Normal bf16 values around 1/128.
void fill_bf16(std::uint64_t key, void* out, std::int64_t count) {
  const RandomStream random(1, Stream::test, key);
  auto* values = static_cast<std::uint16_t*>(out);
  std::uint64_t bits = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    bits = i % 4 == 0 ? random.bits(static_cast<std::uint64_t>(i)) : bits >> 16;
    values[i] = static_cast<std::uint16_t>(0x3c00U | (bits & 0x80ffU));
  }
}

using Lanes = std::uint64_t __attribute__((vector_size(64)));
// The best plain read loop here, of those with one to eight streams, prefetched by 0.5 to 256 KiB:
// one line after the other, 2 KiB ahead.
EPSWEEP_MULTIVERSION
std::uint64_t read_all(const char* data, std::int64_t bytes) {
  Lanes sum = {};
  for (std::int64_t i = 0; i + 64 <= bytes; i += 64) {
    __builtin_prefetch(data + i + 2048);
    Lanes value;
    std::memcpy(&value, __builtin_assume_aligned(data + i, 64), sizeof(value));
    sum ^= value;
  }
  return sum[0] ^ sum[1] ^ sum[2] ^ sum[3] ^ sum[4] ^ sum[5] ^ sum[6] ^ sum[7];
}

double seconds_now(int threads) {
  return threads == 1 ? process_cpu_s() : monotonic_s();
}

// Cold read of as many bytes as the weights have, in 1 MiB pieces over the threads.
class ReadCeiling {
 public:
  ReadCeiling(Backend& backend, std::int64_t bytes, int threads)
      : buffer_(backend.make_buffer(bytes)), pool_(threads) {
    fill_bf16(99, buffer_.data(), bytes / 2);
  }
  double gbs() {
    constexpr std::int64_t kPiece = 1 << 20;
    flush_from_caches(buffer_.data(), buffer_.bytes());
    const auto* data = static_cast<const char*>(buffer_.data());
    std::atomic<std::uint64_t> sink = 0;
    const double begin = seconds_now(pool_.num_threads());
    pool_.run(buffer_.bytes() / kPiece, [&](std::int64_t piece, int) {
      sink.fetch_xor(read_all(data + piece * kPiece, kPiece), std::memory_order_relaxed);
    });
    return static_cast<double>(buffer_.bytes() / kPiece * kPiece) /
           (seconds_now(pool_.num_threads()) - begin) * 1e-9;
  }

 private:
  Buffer buffer_;
  ThreadPool pool_;
};

std::unique_ptr<GroupedGemm> make_gemm(const std::string& kernel, const GemmShape& shape,
                                       int threads) {
  auto gemm = GroupedGemmCatalog::instance().at(kernel).make(shape, threads);
  gemm->prepare([](int expert) {
    return PayloadStream{RandomStream(1, Stream::test, static_cast<std::uint64_t>(expert)),
                         0x1p-8F};
  });
  return gemm;
}

// Buffers big enough for all cells, touched.
struct Bench {
  Bench(const Shape& given, const Options& options)
      : shape(given),
        threads(options.threads),
        backend(BackendCatalog::instance().at("cpu").make({.num_threads = options.threads})),
        lane(backend->make_lane()),
        timeline(backend->make_timeline(4)) {
    const std::int64_t most =
        std::max(std::int64_t{2048},
                 given.experts * *std::max_element(options.rows.begin(), options.rows.end()));
    x = backend->make_buffer(most * std::max(given.hidden, std::int64_t{2048}) * 2);
    wide = backend->make_buffer(most * std::max(2 * given.ffn, std::int64_t{2048}) * 2);
    narrow = backend->make_buffer(most * given.ffn * 2);
    y = backend->make_buffer(most * given.hidden * 2);
    fill_bf16(5, x.data(), x.bytes() / 2);
    for (Buffer* buffer : {&wide, &narrow, &y}) fill_bf16(6, buffer->data(), buffer->bytes() / 2);
  }

  // Seconds between two marks.
  double between(MarkId from, MarkId to) const {
    return threads == 1 ? timeline->cpu_at(to) - timeline->cpu_at(from)
                        : timeline->at(to) - timeline->at(from);
  }

  Shape shape;
  int threads;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Lane> lane;
  std::unique_ptr<Timeline> timeline;
  Buffer x, wide, narrow, y;
};

struct Ffn {
  Ffn(const std::string& kernel, const Shape& shape, int experts, int threads)
      : gate_up(make_gemm(kernel, {experts, 2 * shape.ffn, shape.hidden, DType::bf16}, threads)),
        down(make_gemm(kernel, {experts, shape.hidden, shape.ffn, DType::bf16}, threads)) {}
  std::unique_ptr<GroupedGemm> gate_up, down;
};

// expert_ffn as the pipeline runs it.
void run_ffn(Bench& bench, Ffn& ffn, const std::vector<std::int64_t>& rows) {
  const auto total = std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
  bench.timeline->mark(*bench.lane, 0);
  ffn.gate_up->run(*bench.lane, bench.x, bench.wide, rows);
  bench.timeline->mark(*bench.lane, 1);
  bench.backend->token_ops().activation(*bench.lane, Activation::swiglu, DType::bf16, total,
                                        bench.shape.ffn, bench.wide, bench.narrow);
  bench.timeline->mark(*bench.lane, 2);
  ffn.down->run(*bench.lane, bench.narrow, bench.y, rows);
  bench.timeline->mark(*bench.lane, 3);
  bench.lane->synchronize();
}

// Warm; the shortest of a few.
class SquareCeiling {
 public:
  SquareCeiling(Bench& bench, int threads)
      : bench_(bench), gemm_(make_gemm("amx", {1, kSide, kSide, DType::bf16}, threads)) {
    gemm_->warm(rows_);
  }
  double gflops() {
    double best = 1e9;
    for (int repeat = 0; repeat < 3; ++repeat) {
      const double begin = seconds_now(bench_.threads);
      gemm_->run(*bench_.lane, bench_.x, bench_.wide, rows_);
      best = std::min(best, seconds_now(bench_.threads) - begin);
    }
    return 2.0 * kSide * kSide * kSide / best * 1e-9;
  }

 private:
  static constexpr std::int64_t kSide = 2048;
  Bench& bench_;
  std::unique_ptr<GroupedGemm> gemm_;
  std::vector<std::int64_t> rows_ = {kSide};
};

// oneDNN as it comes, over the same number of cold weights.
struct PlainCeiling {
  explicit PlainCeiling(const Shape& given)
      : shape(given),
        gate_up(given.experts, 2 * given.ffn, given.hidden, filler(2 * given.ffn * given.hidden)),
        down(given.experts, given.hidden, given.ffn, filler(given.ffn * given.hidden)) {}

  static std::function<void(int, void*)> filler(std::int64_t elements) {
    return [elements](int expert, void* out) {
      fill_bf16(static_cast<std::uint64_t>(expert), out, elements);
    };
  }

  double gflops(Bench& bench, std::int64_t rows) {
    gate_up.prepare(rows, bench.threads);
    down.prepare(rows, bench.threads);
    const double begin = seconds_now(bench.threads);
    gate_up.run(bench.x.data(), bench.wide.data());
    down.run(bench.narrow.data(), bench.y.data());
    return 2 * static_cast<double>(shape.weight_elements()) * static_cast<double>(rows) /
           (seconds_now(bench.threads) - begin) * 1e-9;
  }

  Shape shape;
  PlainOneDnn gate_up, down;
};

Round measure(Bench& bench, std::vector<Ffn>& kernels, ReadCeiling& read, PlainCeiling& plain,
              SquareCeiling& square, std::int64_t rows) {
  const Shape& shape = bench.shape;
  const std::vector<std::int64_t> counts(static_cast<std::size_t>(shape.experts), rows);
  const double operations =
      2 * static_cast<double>(shape.weight_elements()) * static_cast<double>(rows);
  Round round;
  round.read_gbs = read.gbs();
  for (Ffn& ffn : kernels) {
    ffn.gate_up->warm(counts);
    ffn.down->warm(counts);
    ffn.gate_up->flush_weights();
    ffn.down->flush_weights();
    run_ffn(bench, ffn, counts);
    round.kernels.push_back(operations / bench.between(0, 3) * 1e-9);
    round.activation_share.push_back(bench.between(1, 2) / bench.between(0, 3));
  }
  round.plain = plain.gflops(bench, rows);
  round.square = square.gflops();
  round.read_gbs = std::max(round.read_gbs, read.gbs());
  return round;
}

template <typename Value>
double median_of(const std::vector<Round>& rounds, const Value& value) {
  std::vector<double> values;
  for (const Round& round : rounds) values.push_back(value(round));
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Per kernel: GFLOP/s; weight bytes per second of the read; times plain; times the best kernel.
void print_cell(const Shape& shape, std::int64_t rows, const std::vector<Round>& rounds,
                const Options& options) {
  fmt::print("{:<17}{:>5}{:>7.1f}{:>7.0f}{:>7.0f}", shape.name, rows,
             median_of(rounds, [](const Round& r) { return r.read_gbs; }),
             median_of(rounds, [](const Round& r) { return r.square; }),
             median_of(rounds, [](const Round& r) { return r.plain; }));
  for (std::size_t i = 0; i < options.kernels.size(); ++i) {
    fmt::print("  |{:>6.0f} {:>5.2f} {:>5.2f} {:>5.2f}",
               median_of(rounds, [i](const Round& r) { return r.kernels[i]; }),
               median_of(rounds,
                         [i, rows](const Round& r) {
                           return r.kernels[i] / static_cast<double>(rows) / r.read_gbs;
                         }),
               median_of(rounds, [i](const Round& r) { return r.kernels[i] / r.plain; }),
               median_of(rounds, [i](const Round& r) {
                 return r.kernels[i] / *std::max_element(r.kernels.begin(), r.kernels.end());
               }));
  }
  fmt::print("  |{:>5.1f}%\n",
             100 * median_of(rounds, [](const Round& r) { return r.activation_share[0]; }));
  std::fflush(stdout);
}

void print_csv(const Shape& shape, std::int64_t rows, const std::vector<Round>& rounds,
               const Options& options) {
  for (std::size_t round = 0; round < rounds.size(); ++round) {
    const Round& r = rounds[round];
    for (std::size_t i = 0; i < options.kernels.size(); ++i) {
      fmt::print("{},{},{},{},{},{},{},{},{},{}\n", shape.name, options.threads, rows, round,
                 options.kernels[i], r.kernels[i], r.activation_share[i], r.read_gbs, r.square,
                 r.plain);
    }
  }
}

void run_shape(const Shape& shape, const Options& options) {
  Bench bench(shape, options);
  std::vector<Ffn> kernels;
  for (const std::string& kernel : options.kernels) {
    kernels.emplace_back(kernel, shape, shape.experts, options.threads);
  }
  ReadCeiling read(*bench.backend, 2 * shape.weight_elements(), options.threads);
  PlainCeiling plain(shape);
  SquareCeiling square(bench, options.threads);
  std::map<std::int64_t, std::vector<Round>> rounds;
  for (int round = 0; round < options.rounds; ++round) {
    for (const auto rows : options.rows) {
      rounds[rows].push_back(measure(bench, kernels, read, plain, square, rows));
    }
  }
  const auto print = options.csv ? print_csv : print_cell;
  for (const auto& [rows, of_rows] : rounds) print(shape, rows, of_rows, options);
}

std::vector<std::string> words_of(const std::string& list) {
  std::vector<std::string> result;
  std::istringstream stream(list);
  for (std::string item; std::getline(stream, item, ',');) result.push_back(item);
  return result;
}

Options parse(const std::vector<std::string>& words) {
  std::map<std::string, std::string> given = {{"--shape", "all"}, {"--kernels", ""},
                                              {"--rounds", "3"},  {"--threads", "1"},
                                              {"--csv", "0"},     {"--rows", ""}};
  for (std::size_t i = 0; i < words.size(); i += 2) {
    if (given.count(words[i]) == 0) throw ConfigError("unknown option '" + words[i] + "'");
    if (i + 1 == words.size()) throw ConfigError("no value for '" + words[i] + "'");
    given[words[i]] = words[i + 1];
  }
  Options options;
  options.shape = given["--shape"];
  options.rounds = std::stoi(given["--rounds"]);
  options.threads = std::stoi(given["--threads"]);
  options.csv = given["--csv"] != "0";
  if (!given["--kernels"].empty()) options.kernels = words_of(given["--kernels"]);
  if (given["--rows"].empty()) return options;
  options.rows.clear();
  for (const std::string& word : words_of(given["--rows"])) {
    options.rows.push_back(std::stoll(word));
  }
  return options;
}

void print_header(const Options& options) {
  if (options.csv) {
    fmt::print("shape,threads,rows,round,kernel,gflops,activation_share,read_gbs,square,plain\n");
    return;
  }
  fmt::print(
      "# {} thread(s), medians of {} rounds; each kernel: GFLOP/s, of read, of plain, of best\n",
      options.threads, options.rounds);
  fmt::print("{:<17}{:>5}{:>7}{:>7}{:>7}", "shape", "rows", "read", "square", "plain");
  for (const std::string& kernel : options.kernels) fmt::print("  | {:<23}", kernel);
  fmt::print("  | act of {}\n", options.kernels[0]);
}

void run(const Options& options) {
  print_header(options);
  for (const Shape& shape : kShapes) {
    if (options.shape == "all" || options.shape == shape.name) run_shape(shape, options);
  }
}

}  // namespace
}  // namespace epsweep

int main(int argc, char** argv) {
  try {
    epsweep::run(epsweep::parse({argv + 1, argv + argc}));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  return 0;
}
