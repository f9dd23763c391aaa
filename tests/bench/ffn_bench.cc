// How close expert_ffn comes to what this machine can do. Weights are cold (flushed, then swept in
// order). Every cell brings its own ceilings, measured around it because the machine's speed
// drifts, so compare the ratios and not the rates:
//   read    plain read of as many cold bytes as the weights have
//   plain   oneDNN as it comes: its own layout, one call per expert, the same cold weights
//   thin    one expert with warm weights, again and again: what no cold kernel reaches
//   square  2048 x 2048 x 2048, warm
// plain, thin and square count the matrix products only; expert_ffn includes the activation.
// With one thread all times are CPU seconds, which other load on the core
// does not lengthen; with more they are wall seconds.
//
//   ffn_bench [--shape olmoe|deepseek-v2-lite|deepseek-v3|all] [--rows 1,8,128] [--rounds 3]
//             [--threads 1] [--kernel onednn] [--csv 1]
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
  std::string shape = "all", kernel = "onednn";
  std::vector<std::int64_t> rows = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512};
  int rounds = 3, threads = 1;
  bool csv = false;
};

// One round of one cell.
struct Sample {
  double weight_gbs = 0, gflops = 0;
  double activation_share = 0;
  double read_gbs = 0, plain_gflops = 0, thin_gflops = 0, square_gflops = 0;
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
// The best plain read loop here, of those with one to eight streams, prefetched by 0.5 to 256 KiB: one
// line after the other, 2 KiB ahead.
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

// Shortest of repeated runs over one expert, whose weights stay warm.
double best_s(Bench& bench, GroupedGemm& gemm, const Buffer& in, Buffer& out, std::int64_t rows) {
  const std::vector<std::int64_t> counts = {rows};
  gemm.warm(counts);
  gemm.run(*bench.lane, in, out, counts);
  double best = 1e9, spent = 0;
  for (int repeat = 0; repeat < 3 || (spent < 0.02 && repeat < 100); ++repeat) {
    const double begin = seconds_now(bench.threads);
    gemm.run(*bench.lane, in, out, counts);
    bench.lane->synchronize();
    const double took = seconds_now(bench.threads) - begin;
    best = std::min(best, took);
    spent += took;
  }
  return best;
}

// oneDNN's own speed: one expert, one call per matrix (`loop`) or sliced (`onednn`), the faster.
struct GemmCeiling {
  GemmCeiling(const Shape& shape, int threads)
      : whole("loop", shape, 1, threads),
        sliced("onednn", shape, 1, threads),
        square(make_gemm("loop", {1, 2048, 2048, DType::bf16}, threads)) {}

  double thin_gflops(Bench& bench, std::int64_t rows) {
    const double up = std::min(best_s(bench, *whole.gate_up, bench.x, bench.wide, rows),
                               best_s(bench, *sliced.gate_up, bench.x, bench.wide, rows));
    const double down = std::min(best_s(bench, *whole.down, bench.narrow, bench.y, rows),
                                 best_s(bench, *sliced.down, bench.narrow, bench.y, rows));
    const Shape& shape = bench.shape;
    return static_cast<double>(6 * shape.hidden * shape.ffn * rows) / (up + down) * 1e-9;
  }
  double square_gflops(Bench& bench) {
    return 2 * 0x1p33 / best_s(bench, *square, bench.x, bench.wide, 2048) * 1e-9;
  }

  Ffn whole, sliced;
  std::unique_ptr<GroupedGemm> square;
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
    gate_up.prepare(rows);
    down.prepare(rows);
    const double begin = seconds_now(1);
    gate_up.run(bench.x.data(), bench.wide.data());
    down.run(bench.narrow.data(), bench.y.data());
    return 2 * static_cast<double>(shape.weight_elements()) * static_cast<double>(rows) /
           (seconds_now(1) - begin) * 1e-9;
  }

  Shape shape;
  PlainOneDnn gate_up, down;
};

Sample measure(Bench& bench, Ffn& ffn, ReadCeiling& read, PlainCeiling& plain, GemmCeiling& gemm,
               std::int64_t rows) {
  const Shape& shape = bench.shape;
  const std::vector<std::int64_t> counts(static_cast<std::size_t>(shape.experts), rows);
  ffn.gate_up->warm(counts);
  ffn.down->warm(counts);
  Sample sample;
  sample.read_gbs = read.gbs();
  ffn.gate_up->flush_weights();
  ffn.down->flush_weights();
  run_ffn(bench, ffn, counts);
  const double seconds = bench.between(0, 3);
  const auto elements = static_cast<double>(shape.weight_elements());
  sample.weight_gbs = 2 * elements / seconds * 1e-9;
  sample.gflops = 2 * elements * static_cast<double>(rows) / seconds * 1e-9;
  sample.activation_share = bench.between(1, 2) / seconds;
  sample.plain_gflops = plain.gflops(bench, rows);
  sample.thin_gflops = gemm.thin_gflops(bench, rows);
  sample.square_gflops = gemm.square_gflops(bench);
  sample.read_gbs = std::max(sample.read_gbs, read.gbs());
  return sample;
}

struct Spread {
  double median = 0, min = 0, max = 0;
};

template <typename Value>
Spread spread(const std::vector<Sample>& samples, const Value& value) {
  std::vector<double> values;
  for (const Sample& sample : samples) values.push_back(value(sample));
  std::sort(values.begin(), values.end());
  return {values[values.size() / 2], values.front(), values.back()};
}

std::string text(const Spread& s) {
  return fmt::format("{:.2f} ({:.2f}-{:.2f})", s.median, s.min, s.max);
}

void print_cell(const Shape& shape, std::int64_t rows, const std::vector<Sample>& samples) {
  fmt::print(
      "{:<17}{:>5}{:>7.1f}{:>7.0f}{:>7.1f}{:>7.0f}{:>7.0f}{:>7.0f}{:>6.1f}%  {:<17} {:<17} {:<17} "
      "{:<17}\n",
      shape.name, rows, spread(samples, [](const Sample& s) { return s.weight_gbs; }).median,
      spread(samples, [](const Sample& s) { return s.gflops; }).median,
      spread(samples, [](const Sample& s) { return s.read_gbs; }).median,
      spread(samples, [](const Sample& s) { return s.plain_gflops; }).median,
      spread(samples, [](const Sample& s) { return s.thin_gflops; }).median,
      spread(samples, [](const Sample& s) { return s.square_gflops; }).median,
      100 * spread(samples, [](const Sample& s) { return s.activation_share; }).median,
      text(spread(samples, [](const Sample& s) { return s.weight_gbs / s.read_gbs; })),
      text(spread(samples, [](const Sample& s) { return s.gflops / s.plain_gflops; })),
      text(spread(samples, [](const Sample& s) { return s.gflops / s.thin_gflops; })),
      text(spread(samples, [](const Sample& s) { return s.gflops / s.square_gflops; })));
  std::fflush(stdout);
}

void print_csv(const Shape& shape, std::int64_t rows, const std::vector<Sample>& samples) {
  for (std::size_t round = 0; round < samples.size(); ++round) {
    const Sample& s = samples[round];
    fmt::print("{},{},{},{},{},{},{},{},{},{}\n", shape.name, rows, round, s.weight_gbs, s.gflops,
               s.read_gbs, s.plain_gflops, s.thin_gflops, s.square_gflops, s.activation_share);
  }
}

void run_shape(const Shape& shape, const Options& options) {
  Bench bench(shape, options);
  Ffn ffn(options.kernel, shape, shape.experts, options.threads);
  ReadCeiling read(*bench.backend, 2 * shape.weight_elements(), options.threads);
  PlainCeiling plain(shape);
  GemmCeiling gemm(shape, options.threads);
  std::map<std::int64_t, std::vector<Sample>> samples;
  for (int round = 0; round < options.rounds; ++round) {
    for (const auto rows : options.rows)
      samples[rows].push_back(measure(bench, ffn, read, plain, gemm, rows));
  }
  const auto print = options.csv ? print_csv : print_cell;
  for (const auto& [rows, of_rows] : samples) print(shape, rows, of_rows);
}

std::vector<std::int64_t> numbers(const std::string& list) {
  std::vector<std::int64_t> result;
  std::istringstream stream(list);
  for (std::string item; std::getline(stream, item, ',');) result.push_back(std::stoll(item));
  return result;
}

Options parse(const std::vector<std::string>& words) {
  std::map<std::string, std::string> given = {{"--shape", "all"}, {"--kernel", "onednn"},
                                              {"--rounds", "3"},  {"--threads", "1"},
                                              {"--csv", "0"},     {"--rows", ""}};
  for (std::size_t i = 0; i < words.size(); i += 2) {
    if (given.count(words[i]) == 0) throw ConfigError("unknown option '" + words[i] + "'");
    if (i + 1 == words.size()) throw ConfigError("no value for '" + words[i] + "'");
    given[words[i]] = words[i + 1];
  }
  Options options;
  options.shape = given["--shape"];
  options.kernel = given["--kernel"];
  options.rounds = std::stoi(given["--rounds"]);
  options.threads = std::stoi(given["--threads"]);
  options.csv = given["--csv"] != "0";
  if (!given["--rows"].empty()) options.rows = numbers(given["--rows"]);
  return options;
}

void print_header(const Options& options) {
  if (options.csv) {
    fmt::print(
        "shape,rows,round,weight_gbs,gflops,read_gbs,plain_gflops,thin_gflops,square_gflops,act_"
        "share\n");
    return;
  }
  fmt::print("# {} thread(s), kernel {}; medians of {} rounds (min-max)\n", options.threads,
             options.kernel, options.rounds);
  fmt::print("{:<17}{:>5}{:>7}{:>7}{:>7}{:>7}{:>7}{:>7}{:>7}  {:<17} {:<17} {:<17} {:<17}\n",
             "shape", "rows", "GB/s", "GF/s", "read", "plain", "thin", "square", "act", "of read",
             "of plain", "of thin", "of square");
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
