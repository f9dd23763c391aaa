// How close every kernel comes to the GPU's own ceilings: shares of the roof
// max(bytes / copy rate, FLOPs / large product) for the experts of one rank at several EP sizes.
//
//   gpu_ffn_bench [--experts 256] [--hidden 7168] [--ffn 2048] [--ep 8,16,32,64]
//                 [--rows 1,4,16,64,256,1024,4096] [--dtype bf16] [--repetitions 7] [--csv FILE]
//
// --dtype bf16,fp8,fp8_block128: one table each, against the ceilings of that dtype.
//   gpu_ffn_bench --list 1             the kernels
//   gpu_ffn_bench --profile KERNEL     one run of the first cell in an NVTX range of the kernel's
//   name,
//                                      and the tensor operations that its rows need
#include <cstdio>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "ffn_study.h"

namespace epsweep {
namespace {

struct Options {
  int experts = 256, repetitions = 7;
  std::int64_t hidden = 7168, ffn = 2048;
  std::vector<std::int64_t> ep = {8, 16, 32, 64}, rows = {1, 4, 16, 64, 256, 1024, 4096};
  std::vector<DType> dtypes = {DType::bf16};
  std::string csv, profile;
  bool list = false;
};

std::vector<std::int64_t> read_list(const std::string& text) {
  std::vector<std::int64_t> values;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) values.push_back(std::stoll(word));
  return values;
}

std::vector<DType> read_dtypes(const std::string& text) {
  std::vector<DType> values;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    bool known = false;
    for (const DType dtype : {DType::bf16, DType::fp32, DType::fp8, DType::fp8_block128}) {
      if (word != to_string(dtype)) continue;
      values.push_back(dtype);
      known = true;
    }
    if (!known) throw ConfigError("gpu_ffn_bench: unknown dtype " + word);
  }
  return values;
}

Options read_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--experts")
      options.experts = std::stoi(value);
    else if (name == "--repetitions")
      options.repetitions = std::stoi(value);
    else if (name == "--hidden")
      options.hidden = std::stoll(value);
    else if (name == "--ffn")
      options.ffn = std::stoll(value);
    else if (name == "--ep")
      options.ep = read_list(value);
    else if (name == "--rows")
      options.rows = read_list(value);
    else if (name == "--dtype")
      options.dtypes = read_dtypes(value);
    else if (name == "--list")
      options.list = true;
    else if (name == "--profile")
      options.profile = value;
    else if (name == "--csv")
      options.csv = value;
    else
      throw ConfigError("gpu_ffn_bench: unknown option " + name);
  }
  return options;
}

std::vector<std::string> kernels() {
  std::vector<std::string> names;
  for (const std::string& name : GroupedGemmCatalog::instance().names()) {
    if (GroupedGemmCatalog::instance().at(name).backend == "cuda") names.push_back(name);
  }
  return names;
}

// Kernels down, rows across; a cell is the share of the roof, the best of a column starred.
void print_table(const FfnShape& shape, const Ceilings& ceilings,
                 const std::vector<std::vector<FfnTime>>& by_kernel) {
  fmt::print("{:<26}", "rows per expert");
  for (const FfnTime& time : by_kernel.front()) fmt::print("{:>9}", time.rows_per_expert);
  std::vector<double> best(by_kernel.front().size(), 1e30);
  for (const auto& times : by_kernel) {
    for (std::size_t i = 0; i < times.size(); ++i) {
      if (times[i].median_s) best[i] = std::min(best[i], *times[i].median_s);
    }
  }
  fmt::print("\n{:<26}", "best, us");
  for (const double seconds : best) fmt::print("{:>9.1f}", seconds * 1e6);
  fmt::print("\n");
  for (const auto& times : by_kernel) {
    fmt::print("{:<26}", times.front().kernel);
    for (std::size_t i = 0; i < times.size(); ++i) {
      if (!times[i].median_s) {
        fmt::print("{:>9}", "-");
        continue;
      }
      const double share =
          ffn_need(shape, times[i].rows_per_expert).roof_s(ceilings) / *times[i].median_s;
      fmt::print("{:>8.2f}{}", share, *times[i].median_s <= best[i] ? '*' : ' ');
    }
    fmt::print("{}\n", times.front().refusal.empty() ? "" : "  " + times.front().refusal);
  }
}

void write_csv(std::FILE* file, std::int64_t ep, const FfnShape& shape, const Ceilings& ceilings,
               const std::vector<FfnTime>& times) {
  for (const FfnTime& time : times) {
    const FfnNeed need = ffn_need(shape, time.rows_per_expert);
    const double seconds = time.median_s.value_or(0);
    fmt::print(file, "{},{},{},{},{},{},{},{},{},{},{}\n", to_string(shape.dtype), ep,
               shape.experts, time.kernel, time.rows_per_expert,
               seconds > 0 ? fmt::format("{:.3f}", seconds * 1e6) : "",
               seconds > 0 ? fmt::format("{:.1f}", need.flops / seconds * 1e-12) : "",
               seconds > 0 ? fmt::format("{:.1f}", need.bytes / seconds * 1e-9) : "",
               seconds > 0 ? fmt::format("{:.3f}", need.roof_s(ceilings) / seconds) : "",
               time.kernel_calls, time.computed_rows);
  }
}

FfnShape shape_at(const Options& options, DType dtype, std::int64_t ep) {
  return {.hidden = options.hidden,
          .ffn = options.ffn,
          .experts = static_cast<int>(options.experts / ep),
          .dtype = dtype};
}

int profile(const Options& options, Backend& backend) {
  const FfnShape shape = shape_at(options, options.dtypes.front(), options.ep.front());
  run_in_range(backend, shape, options.profile, options.rows.front());
  fmt::print("logical_operations,{:.0f}\n", ffn_need(shape, options.rows.front()).flops);
  return 0;
}

// One table for every EP size, or why there is none.
void study(const Options& options, DType dtype, Backend& backend, std::FILE* csv) {
  Ceilings ceilings;
  try {
    ceilings = measure_ceilings(backend, dtype);
  } catch (const Error& error) {
    fmt::print("\n{}: no study, {}\n", to_string(dtype), error.what());
    return;
  }
  fmt::print("\n{}: copy {:.0f} GB/s (read and written), 8192^3 {} product {:.0f} TFLOP/s\n",
             backend.describe().device, ceilings.copy_bytes_per_s * 1e-9, to_string(dtype),
             ceilings.gemm_flops * 1e-12);
  for (const std::int64_t ep : options.ep) {
    const FfnShape shape = shape_at(options, dtype, ep);
    std::vector<std::vector<FfnTime>> by_kernel;
    for (const std::string& kernel : kernels()) {
      by_kernel.push_back(time_kernel(backend, shape, kernel, options.rows, options.repetitions));
      if (csv != nullptr) write_csv(csv, ep, shape, ceilings, by_kernel.back());
    }
    fmt::print("\nEP{}: {} experts of {} x {}, {}, cold weights: share of the roof\n", ep,
               shape.experts, shape.hidden, shape.ffn, to_string(dtype));
    print_table(shape, ceilings, by_kernel);
  }
}

int run(const Options& options) {
  if (options.list) {
    for (const std::string& name : kernels()) fmt::print("{}\n", name);
    return 0;
  }
  const auto backend = BackendCatalog::instance().at("cuda").make({});
  if (!options.profile.empty()) return profile(options, *backend);
  std::FILE* csv = options.csv.empty() ? nullptr : std::fopen(options.csv.c_str(), "w");
  if (csv == nullptr && !options.csv.empty())
    throw ConfigError(options.csv + ": cannot be written");
  if (csv != nullptr) {
    fmt::print(csv,
               "dtype,ep_size,experts,kernel,rows_per_expert,us,tflops,gb_per_s,share_of_roof,"
               "kernel_calls,computed_rows\n");
  }
  for (const DType dtype : options.dtypes) study(options, dtype, *backend, csv);
  if (csv != nullptr) std::fclose(csv);
  return 0;
}

}  // namespace
}  // namespace epsweep

int main(int argc, char** argv) {
  try {
    return epsweep::run(epsweep::read_options(argc, argv));
  } catch (const std::exception& error) {
    fmt::print(stderr, "gpu_ffn_bench: {}\n", error.what());
    return 1;
  }
}
