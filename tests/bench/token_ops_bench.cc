// How close the stages around the expert FFN come to a copy. Every op runs on buffers as an EP1
// layer has them, at 4,096 tokens by default, all of them flushed from the caches before each call.
// Bytes are what the op must move: every input read once, every output written once.
//   router     token rows and the gate matrix read, choices and weights written; also GFLOP/s
//   permute    counting sort, token rows read once, one row written per assignment
//   regroup    rows into expert order (EP2 and more, inside expert_ffn): as many read as written
//   swiglu     gate beside up read, the product written
//   unpermute  one row per assignment read, one fp32 row per token written
// Ceilings are measured in the same round right before each op:
//   copy    as many bytes in all (half read, half written) between two flushed buffers, the faster
//           of memcpy and of streaming stores behind a prefetch
//   fma     fp32 multiply-adds from registers, for the router
// With one thread all times are CPU seconds, which other load on the core does not lengthen; with
// more they are wall seconds.
//
//   token_ops_bench [--shape olmoe|deepseek-v2-lite|deepseek-v3|all] [--op all] [--tokens 4096]
//                   [--threads 1] [--rounds 5]
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/host_probe.h"
#include "base/random.h"
#include "base/slot_order.h"
#include "cpu/cache_flush.h"
#include "cpu/stream_copy.h"
#include "cpu/thread_pool.h"
#include "device/backend.h"

namespace epsweep {
namespace {

struct Shape {
  std::string name;
  std::int64_t hidden = 0, ffn = 0;
  int experts = 0, top_k = 0;
};
const std::vector<Shape> kShapes = {{"olmoe", 2048, 1024, 64, 8},
                                    {"deepseek-v2-lite", 2048, 1408, 64, 6},
                                    {"deepseek-v3", 7168, 2048, 256, 8}};

struct Options {
  std::string shape = "all", op = "all";
  std::int64_t tokens = 4096;
  int threads = 1, rounds = 5;
};

double seconds_now(int threads) {
  return threads == 1 ? process_cpu_s() : monotonic_s();
}

void flush(const Buffer& buffer) {
  flush_from_caches(buffer.data(), buffer.bytes());
}

// 16 independent chains of 16 lanes, never leaving the registers.
EPSWEEP_MULTIVERSION
float multiply_add(std::int64_t steps, float factor) {
  using Lanes = float __attribute__((vector_size(64)));
  Lanes sums[16];
  const Lanes by = factor - Lanes{};
  for (int i = 0; i < 16; ++i) sums[i] = by * static_cast<float>(i + 1);
  for (std::int64_t step = 0; step < steps; ++step) {
    for (Lanes& sum : sums) sum = sum * by + by;
  }
  float total = 0;
  for (const Lanes& sum : sums) {
    for (int lane = 0; lane < 16; ++lane) total += sum[lane];
  }
  return total;
}

using CopyPart = void (*)(const char* from, char* to, std::int64_t bytes);

// Bytes per second, read and written, of copying between two cold buffers.
class Ceilings {
 public:
  explicit Ceilings(int threads) : pool_(threads) {}

  // bytes_moved: in all; half of them are read and half written.
  double copy_gbs(Backend& backend, std::int64_t bytes_moved) {
    constexpr std::int64_t kPart = std::int64_t{1} << 20;
    const std::int64_t parts = std::max<std::int64_t>(1, bytes_moved / 2 / kPart);
    if (from_.bytes() < parts * kPart) {
      from_ = backend.make_buffer(parts * kPart);
      to_ = backend.make_buffer(parts * kPart);
      for (Buffer* buffer : {&from_, &to_}) {
        std::memset(buffer->data(), 0x3c, static_cast<std::size_t>(buffer->bytes()));
      }
    }
    const CopyPart plain = [](const char* from, char* to, std::int64_t bytes) {
      std::memcpy(to, from, static_cast<std::size_t>(bytes));
    };
    const CopyPart streamed = [](const char* from, char* to, std::int64_t bytes) {
      stream_copy(from, to, bytes);
    };
    double best = 0;
    for (const CopyPart copy : {plain, streamed}) {
      flush_from_caches(from_.data(), parts * kPart);
      flush_from_caches(to_.data(), parts * kPart);
      const double begin = seconds_now(pool_.num_threads());
      pool_.run(parts, [&](std::int64_t part, int) {
        copy(static_cast<const char*>(from_.data()) + part * kPart,
             static_cast<char*>(to_.data()) + part * kPart, kPart);
      });
      const double took = seconds_now(pool_.num_threads()) - begin;
      const double rate = static_cast<double>(2 * parts * kPart) / took * 1e-9;
      rates_.push_back(rate);
      best = std::max(best, rate);
    }
    return best;
  }

  double fma_gflops() {
    constexpr std::int64_t kSteps = 200000, kItems = 8;
    std::vector<float> sink(kItems);
    const double begin = seconds_now(pool_.num_threads());
    pool_.run(kItems, [&](std::int64_t item, int) {
      sink[static_cast<std::size_t>(item)] = multiply_add(kSteps, 0.5F);
    });
    const double took = seconds_now(pool_.num_threads()) - begin;
    const float sum = std::reduce(sink.begin(), sink.end());
    EPS_EXPECT(sum > 0, "the sums are used");
    return static_cast<double>(kItems * kSteps * 16 * 16 * 2) / took * 1e-9;
  }

  // Rates of the two copies, one after the other, of every call so far.
  const std::vector<double>& rates() const { return rates_; }

 private:
  ThreadPool pool_;
  Buffer from_, to_;
  std::vector<double> rates_;
};

// bf16 values of variance 1: odd numbers up to 255 times the unit.
Buffer bf16_values(Backend& backend, std::uint64_t key, std::int64_t count) {
  Buffer buffer = backend.make_buffer(count * 2);
  backend.fill(buffer, PayloadStream{RandomStream(1, Stream::test, key), 0x1p-7F}, 0, count,
               DType::bf16);
  return buffer;
}

// The buffers of one layer.
struct Layer {
  Layer(const Shape& given, const Options& options)
      : shape(given),
        tokens(options.tokens),
        rows(options.tokens * given.top_k),
        backend(BackendCatalog::instance().at("cpu").make({.num_threads = options.threads})),
        lane(backend->make_lane()) {
    x = bf16_values(*backend, 1, tokens * shape.hidden);
    gate = backend->make_buffer(shape.experts * shape.hidden * 4);
    // Logits of about 1: with large ones most weights would be denormal, which is slow.
    backend->fill(gate, PayloadStream{RandomStream(1, Stream::test, 2), 0x1p-13F}, 0,
                  shape.experts * shape.hidden, DType::fp32);
    wide = bf16_values(*backend, 3, rows * 2 * shape.ffn);
    narrow = bf16_values(*backend, 4, rows * shape.ffn);
    send = bf16_values(*backend, 5, rows * shape.hidden);
    back = bf16_values(*backend, 6, rows * shape.hidden);
    for (Buffer* buffer : {&prescribed, &slots, &own, &weights, &position, &order}) {
      *buffer = backend->make_buffer(rows * 4);
    }
    counts = backend->make_buffer(shape.experts * 8);
    out = backend->make_buffer(tokens * shape.hidden * 4);
    std::memset(out.data(), 0, static_cast<std::size_t>(out.bytes()));
    choose();
    router();
  }

  // Distinct experts per token, uniform; then the send order, and an expert order of two sources.
  void choose() {
    const RandomStream random(1, Stream::test, 7);
    const auto chosen = prescribed.as<std::int32_t>();
    std::vector<std::int32_t> all(static_cast<std::size_t>(shape.experts));
    std::uint64_t index = 0;
    for (std::int64_t token = 0; token < tokens; ++token) {
      std::iota(all.begin(), all.end(), 0);
      for (int k = 0; k < shape.top_k; ++k) {
        const int left = shape.experts - k;
        const auto other =
            static_cast<std::size_t>(k + static_cast<int>(random.uniform(index++) * left));
        std::swap(all[static_cast<std::size_t>(k)], all[other]);
        chosen[static_cast<std::size_t>(token * shape.top_k + k)] =
            all[static_cast<std::size_t>(k)];
      }
    }
    std::ranges::copy(chosen, slots.as<std::int32_t>().begin());
    backend->token_ops().count_slots(*lane, sort(), slots, counts);
    std::vector<std::int64_t> received;
    for (const auto source : {0, 1}) {
      for (const std::int64_t count : counts.as<std::int64_t>()) {
        received.push_back((count + source) / 2);
      }
    }
    order_by_expert(received, 2, shape.experts, order.as<std::int32_t>());
  }

  SlotSort sort() const { return {.num_slots = shape.experts, .assignments = rows}; }
  RowIndex index_of(const Buffer& buffer) const { return {.buffer = &buffer, .count = rows}; }

  void router() {
    backend->token_ops().router(*lane,
                                {.num_tokens = tokens,
                                 .hidden_dim = shape.hidden,
                                 .num_experts = shape.experts,
                                 .top_k = shape.top_k},
                                x, gate, prescribed, own, weights);
  }
  void count() { backend->token_ops().count_slots(*lane, sort(), slots, counts); }
  void permute() {
    backend->token_ops().sort_by_slot(*lane, sort(), slots, counts, position);
    backend->token_ops().scatter_rows(*lane, x, shape.hidden * 2, shape.top_k, index_of(position),
                                      shape.hidden * 2, send);
  }
  void regroup() {
    backend->token_ops().gather_rows(*lane, back, index_of(order), shape.hidden * 2, send);
  }
  void swiglu() {
    backend->token_ops().activation(*lane, Activation::swiglu, DType::bf16, rows, shape.ffn, wide,
                                    narrow);
  }
  void unpermute() {
    backend->token_ops().weighted_reduce(*lane, DType::bf16, shape.top_k, index_of(position),
                                         weights, shape.hidden, back, out);
  }

  Shape shape;
  std::int64_t tokens, rows;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Lane> lane;
  Buffer x, gate, wide, narrow, send, back, out;
  Buffer prescribed, slots, own, weights, position, order, counts;
};

struct Op {
  std::string name;
  void (Layer::*run)();
  std::vector<const Buffer*> buffers;  // each moved once
  double flops = 0;
};

std::vector<Op> ops_of(const Layer& l) {
  const double products = 2.0 * static_cast<double>(l.tokens * l.shape.hidden * l.shape.experts);
  return {{"router", &Layer::router, {&l.x, &l.gate, &l.prescribed, &l.own, &l.weights}, products},
          {"permute", &Layer::permute, {&l.x, &l.slots, &l.position, &l.send}},
          {"regroup", &Layer::regroup, {&l.back, &l.order, &l.send}},
          {"swiglu", &Layer::swiglu, {&l.wide, &l.narrow}},
          {"unpermute", &Layer::unpermute, {&l.back, &l.position, &l.weights, &l.out}}};
}

// One round of one op.
struct Sample {
  double gbs = 0, copy_gbs = 0, gflops = 0, fma_gflops = 0;
};

std::int64_t bytes_of_op(const Op& op) {
  std::int64_t bytes = 0;
  for (const Buffer* buffer : op.buffers) bytes += buffer->bytes();
  return bytes;
}

Sample measure(Layer& layer, const Op& op, Ceilings& ceilings, int threads) {
  Sample sample;
  const std::int64_t bytes = bytes_of_op(op);
  sample.copy_gbs = ceilings.copy_gbs(*layer.backend, bytes);
  if (op.flops > 0) sample.fma_gflops = ceilings.fma_gflops();
  layer.count();  // which permute uses up
  for (const Buffer* buffer : op.buffers) flush(*buffer);
  const double begin = seconds_now(threads);
  (layer.*op.run)();
  const double took = seconds_now(threads) - begin;
  sample.gbs = static_cast<double>(bytes) / took * 1e-9;
  sample.gflops = op.flops / took * 1e-9;
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

void print_line(const Layer& layer, const Op& op, const std::vector<Sample>& samples) {
  const Spread rate = spread(samples, [](const Sample& s) { return s.gbs; });
  const Spread copy = spread(samples, [](const Sample& s) { return s.copy_gbs; });
  const Spread ratio = spread(samples, [](const Sample& s) { return s.gbs / s.copy_gbs; });
  fmt::print("{:<17} {:<10}{:>7.0f}{:>9.2f}{:>8.2f}  {:.2f} ({:.2f}-{:.2f})", layer.shape.name,
             op.name, static_cast<double>(bytes_of_op(op)) * 1e-6, rate.median, copy.median,
             ratio.median, ratio.min, ratio.max);
  if (op.flops > 0) {
    const Spread peak = spread(samples, [](const Sample& s) { return s.gflops / s.fma_gflops; });
    fmt::print("   {:.0f} GFLOP/s, {:.2f} ({:.2f}-{:.2f}) of fma",
               spread(samples, [](const Sample& s) { return s.gflops; }).median, peak.median,
               peak.min, peak.max);
  }
  fmt::print("\n");
  std::fflush(stdout);
}

void run_shape(const Shape& shape, const Options& options, Ceilings& ceilings) {
  Layer layer(shape, options);
  const std::vector<Op> ops = ops_of(layer);
  std::map<std::string, std::vector<Sample>> samples;
  layer.count();
  layer.permute();
  for (int round = 0; round < options.rounds; ++round) {
    for (const Op& op : ops) {
      if (options.op != "all" && options.op != op.name) continue;
      samples[op.name].push_back(measure(layer, op, ceilings, options.threads));
    }
  }
  for (const Op& op : ops) {
    if (samples.count(op.name) > 0) print_line(layer, op, samples[op.name]);
  }
}

Options parse(const std::vector<std::string>& words) {
  Options options;
  const std::map<std::string, std::function<void(const std::string&)>> known = {
      {"--shape", [&](const std::string& value) { options.shape = value; }},
      {"--op", [&](const std::string& value) { options.op = value; }},
      {"--tokens", [&](const std::string& value) { options.tokens = std::stoll(value); }},
      {"--threads", [&](const std::string& value) { options.threads = std::stoi(value); }},
      {"--rounds", [&](const std::string& value) { options.rounds = std::stoi(value); }}};
  for (std::size_t i = 0; i < words.size(); i += 2) {
    const auto option = known.find(words[i]);
    if (option == known.end()) throw ConfigError("unknown option '" + words[i] + "'");
    if (i + 1 == words.size()) throw ConfigError("no value for '" + words[i] + "'");
    option->second(words[i + 1]);
  }
  return options;
}

// Which of the copies made the ceiling is part of the result.
void print_copies(const Ceilings& ceilings) {
  std::vector<std::vector<double>> by_kind(2);
  for (std::size_t i = 0; i < ceilings.rates().size(); ++i) {
    by_kind[i % 2].push_back(ceilings.rates()[i]);
  }
  for (auto& rates : by_kind) std::sort(rates.begin(), rates.end());
  const auto median = [](const std::vector<double>& rates) { return rates[rates.size() / 2]; };
  fmt::print("# copies, GB/s read and written: memcpy {:.2f}, streaming {:.2f}\n",
             median(by_kind[0]), median(by_kind[1]));
}

void run(const Options& options) {
  fmt::print("# {} tokens, {} thread(s); medians of {} rounds (min-max)\n", options.tokens,
             options.threads, options.rounds);
  fmt::print("{:<17} {:<10}{:>7}{:>9}{:>8}  {}\n", "shape", "op", "MB", "GB/s", "copy", "of copy");
  Ceilings ceilings(options.threads);
  for (const Shape& shape : kShapes) {
    if (options.shape == "all" || options.shape == shape.name) run_shape(shape, options, ceilings);
  }
  if (!ceilings.rates().empty()) print_copies(ceilings);
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
