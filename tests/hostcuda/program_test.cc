// The program with the CUDA engine on doubles, as a user starts it: which device a rank gets.
#include "support/program.h"

#include <cstdlib>

#include <gmock/gmock.h>

namespace epsweep {
namespace {

using testing::HasSubstr;

// What programs that are started while it lives find in their environment.
class Setting {
 public:
  Setting(const char* name, int value) : name_(name) {
    setenv(name, std::to_string(value).c_str(), 1);
  }
  ~Setting() { unsetenv(name_); }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  const char* name_;
};
// Devices of the host, which all its ranks see.
constexpr const char* kDevices = "EPSWEEP_HOSTCUDA_DEVICES";
// 12040 for one that serves CUDA 12.4; 0 for none.
constexpr const char* kDriver = "EPSWEEP_HOSTCUDA_DRIVER";
constexpr const char* kMemoryMib = "EPSWEEP_HOSTCUDA_MEMORY_MIB";

ProgramResult run_cuda(int ranks, const TempDir& dir, const std::string& options = "") {
  const std::string experiment =
      dir.write("x.yaml", toy_experiment({"ep_sizes: [" + std::to_string(ranks) + "]"}));
  return run_on_ranks(
      ranks, "run " + experiment + " --backend cuda --out " + dir.path("out") + " " + options);
}

int count_lines(const std::string& text, const std::string& word) {
  int lines = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    ++lines;
  }
  return lines;
}

TEST(Devices, EveryRankOfAHostHasItsOwn) {
  const Setting two(kDevices, 2);
  const TempDir dir;
  const ProgramResult result = run_cuda(2, dir);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const Json record = records_of(dir.path("out")).at(0);
  EXPECT_EQ(record["load"]["ranks_per_device"], 1);
}

TEST(Devices, FewerThanRanksAreRefusedInOneLine) {
  const Setting two(kDevices, 2);
  const TempDir dir;
  const ProgramResult result = run_cuda(4, dir);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("4 ranks on this host, but 2 GPUs visible"));
  EXPECT_EQ(count_lines(result.err, "error:"), 1) << result.err;
}

TEST(Devices, OneForTwoRanksIsRefusedInOneLine) {
  const Setting one(kDevices, 1);
  const TempDir dir;
  const ProgramResult result = run_cuda(2, dir);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("ranks 0 and 1 use the same device, GPU-"));
  EXPECT_EQ(count_lines(result.err, "error:"), 1) << result.err;
}

TEST(Devices, SharingMarksThePoints) {
  const Setting one(kDevices, 1);
  const TempDir dir;
  const ProgramResult result = run_cuda(2, dir, "--allow-shared-gpu --set transport=mpi_staged");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const Json record = records_of(dir.path("out")).at(0);
  EXPECT_EQ(record["load"]["ranks_per_device"], 2);
  EXPECT_THAT(result.out, HasSubstr("# up to 2 ranks share a device"));
}

// The double is the NCCL of the headers, which may be as old as 2.28.
TEST(Devices, SharingSkipsNcclThatCannot) {
  const Setting one(kDevices, 1);
  const TempDir dir;
  const ProgramResult result = run_cuda(2, dir, "--allow-shared-gpu --set transport=nccl_sendrecv");
  const Json record = records_of(dir.path("out")).at(0);
  if (result.exit_code == 0) {
    EXPECT_EQ(record["state"], "measured");
    return;
  }
  EXPECT_EQ(result.exit_code, 4) << result.err;
  EXPECT_EQ(record["state"], "skipped");
  EXPECT_THAT(record["reason"].get<std::string>(), HasSubstr("refuses ranks that share a GPU"));
}

TEST(Devices, ADriverThatIsTooOldIsNamedInOneLine) {
  const Setting old(kDriver, 12040);
  const TempDir dir;
  const ProgramResult result = run_cuda(2, dir);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("the driver serves CUDA 12.4, this program needs 13."));
  EXPECT_EQ(count_lines(result.err, "error:"), 1) << result.err;
}

TEST(Devices, NoDriverIsNamedInOneLine) {
  const Setting none(kDriver, 0);
  const TempDir dir;
  const ProgramResult result = run_cuda(2, dir);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("no NVIDIA driver is loaded on this host"));
  EXPECT_EQ(count_lines(result.err, "error:"), 1) << result.err;
}

TEST(Devices, NoGpuIsNamedInOneLine) {
  const Setting none(kDevices, 0);
  const TempDir dir;
  const ProgramResult result = run_cuda(2, dir);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("no GPU is visible on this host"));
  EXPECT_EQ(count_lines(result.err, "error:"), 1) << result.err;
}

// Damage done on the device is found there too.
TEST(Faults, AreCaughtOnTheDevice) {
  for (const std::string fault : {"swap_experts", "skip_expert", "drop_row"}) {
    const TempDir dir;
    const ProgramResult result = run_cuda(2, dir, "--inject " + fault + ":rank=1");
    EXPECT_EQ(result.exit_code, 3) << fault << ": " << result.err;
    EXPECT_EQ(records_of(dir.path("out")).at(0)["state"], "failed") << fault;
  }
}

// The tolerance of e4m3 is wider; wrong experts and rows are far beyond it.
TEST(Faults, AreCaughtInFp8) {
  for (const std::string dtype : {"fp8", "fp8_block128"}) {
    for (const std::string fault : {"swap_experts", "skip_expert", "drop_row"}) {
      const TempDir dir;
      const ProgramResult result =
          run_cuda(2, dir, "--set dtype=" + dtype + " --inject " + fault + ":rank=1");
      EXPECT_EQ(result.exit_code, 3) << dtype << " " << fault << ": " << result.err;
      EXPECT_EQ(records_of(dir.path("out")).at(0)["state"], "failed") << dtype << " " << fault;
    }
  }
}

TEST(Faults, AreCaughtInSectionsOfFixedCapacity) {
  const TempDir dir;
  const ProgramResult result =
      run_cuda(2, dir, "--set transport=nccl_alltoall --inject drop_row:rank=1");
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_EQ(records_of(dir.path("out")).at(0)["state"], "failed");
}

// Transports inside exchange units, launches innermost.
TEST(Exchange, WhatDoesNotGoTogetherIsSkippedWithItsReason) {
  const TempDir dir;
  const ProgramResult result =
      run_cuda(2, dir,
               "--set transport=[nccl_sendrecv,mpi_staged,nccl_alltoall] --set "
               "exchange_unit=[assignment,rank] --set launch=[direct,graph]");
  EXPECT_EQ(result.exit_code, 4) << result.err;
  const std::vector<Json> records = records_of(dir.path("out"));
  ASSERT_EQ(records.size(), 12U);
  for (const Json& record : records) {
    const Json& point = record["point"];
    const bool graph = point["launch"] == "graph", fixed = point["transport"] == "nccl_alltoall";
    const bool unit_rank = point["exchange_unit"] == "rank";
    const bool runs = fixed ? !unit_rank : !graph;
    EXPECT_EQ(record["state"], runs ? "measured" : "skipped") << record["reason"];
    if (runs) continue;
    EXPECT_THAT(record["reason"].get<std::string>(),
                HasSubstr(fixed ? "which copies arrived" : "waits for row counts"));
  }
}

TEST(Exchange, PaddingIsRecordedAndOverflowSkipped) {
  const TempDir dir;
  const std::string options = "--set transport=nccl_alltoall --set capacity_factor=";
  ASSERT_EQ(run_cuda(2, dir, options + "4").exit_code, 0);
  const Json record = records_of(dir.path("out")).at(0);
  const Json& bytes = record["bytes"];
  const Json& dispatch = bytes["dispatch"];
  const auto layers = record["point"]["layers"].get<std::int64_t>();
  EXPECT_EQ(
      dispatch["sent_bytes"].get<std::int64_t>() + dispatch["padding_bytes"].get<std::int64_t>(),
      4 * layers * bytes["capacity_rows"].get<std::int64_t>() *
          dispatch["row_bytes"].get<std::int64_t>());
  EXPECT_GT(dispatch["padding_bytes"].get<std::int64_t>(), 0);
  const TempDir other;
  EXPECT_EQ(run_cuda(2, other, options + "1").exit_code, 4);
  EXPECT_THAT(records_of(other.path("out")).at(0)["reason"].get<std::string>(),
              HasSubstr("capacity_factor 1 gives every pair of ranks"));
}

// The tolerance is for tensor cores, whose sums have 14 bits; those of the doubles have 24, so the
// oracle must see next to nothing where it quantises what the engine does.
TEST(DTypes, Fp8IsMeasuredAndChecked) {
  const TempDir dir;
  const ProgramResult result = run_cuda(2, dir, "--set dtype=[fp8,fp8_block128]");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const Json& record : records_of(dir.path("out"))) {
    EXPECT_EQ(record["state"], "measured") << record["reason"];
    EXPECT_LT(record["check"]["worst_error"].get<double>(), 0.01);
    // 64 bf16 values; 3 * 64 * 32 weights of a byte.
    EXPECT_EQ(record["bytes"]["dispatch"]["row_bytes"], 128);
    EXPECT_EQ(record["ffn"]["weight_bytes"].get<std::int64_t>(),
              record["ffn"]["touched_experts"].get<std::int64_t>() * 3 * 64 * 32);
  }
}

TEST(DTypes, KernelsWithoutFp8AreSkippedWithTheReason) {
  const TempDir dir;
  const ProgramResult result =
      run_cuda(2, dir, "--set dtype=[fp8,fp8_block128] --set grouped_gemm=[gemv,cublaslt_padded]");
  EXPECT_EQ(result.exit_code, 4) << result.err;
  const std::vector<Json> records = records_of(dir.path("out"));
  ASSERT_EQ(records.size(), 4U);
  for (const Json& record : records) {
    const bool runs =
        record["point"]["grouped_gemm"] == "cublaslt_padded" && record["point"]["dtype"] == "fp8";
    EXPECT_EQ(record["state"], runs ? "measured" : "skipped") << record["reason"];
    if (!runs) {
      EXPECT_THAT(record["reason"].get<std::string>(), testing::StartsWith("grouped_gemm "));
    }
  }
}

// All 1,024 rows go to one of 128 experts. Padding every expert to them takes 128 * 1,024 rows of
// 2 * (512 + 512) and 2 * (256 + 512) bytes, 448 MiB, beside 96 MiB of weights; rows as they are
// take a few MiB.
TEST(Memory, PaddingThatDoesNotFitStopsThePointOnly) {
  const Setting memory(kMemoryMib, 512);
  const TempDir dir;
  const std::string experiment = dir.write(
      "x.yaml",
      toy_experiment({"model: {name: m, hidden_dim: 512, ffn_dim: 256, num_experts: 128, top_k: 1, "
                      "num_moe_layers: 1}",
                      "ep_sizes: [1]", "concurrency: {fixed_global: [1024]}",
                      "routing: {distribution: k_hot, num_hot: 1, hot_fraction: 1}", "iterations: 1",
                      "grouped_gemm: [cublaslt_loop, cublaslt_padded]"}));
  const ProgramResult result =
      run_on_ranks(1, "run " + experiment + " --backend cuda --out " + dir.path("out"));
  EXPECT_EQ(result.exit_code, 4) << result.err;
  const std::vector<Json> records = records_of(dir.path("out"));
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0]["state"], "measured") << records[0]["reason"];
  EXPECT_EQ(records[1]["state"], "stopped");
  EXPECT_THAT(records[1]["reason"].get<std::string>(), HasSubstr("device_memory: needs"));
}

TEST(DTypes, TheCpuHasNoFp8) {
  const TempDir dir;
  const ProgramResult result = run_on_ranks(
      2, "run " + dir.write("x.yaml", toy_experiment({"ep_sizes: [2]"})) +
             " --backend cpu --set dtype=[bf16,fp8,fp8_block128] --out " + dir.path("out"));
  EXPECT_EQ(result.exit_code, 4) << result.err;
  const std::vector<Json> records = records_of(dir.path("out"));
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(records[0]["state"], "measured");
  EXPECT_EQ(records[1]["state"], "skipped");
  EXPECT_THAT(records[1]["reason"].get<std::string>(),
              HasSubstr("dtype fp8: backend cpu computes in bf16, fp32 only"));
  EXPECT_EQ(records[2]["state"], "skipped");
}

TEST(Devices, AChosenOneThatIsNotThereIsRefused) {
  const Setting two(kDevices, 2);
  const TempDir dir;
  const ProgramResult result = run_cuda(1, dir, "--device 2");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("there is no GPU 2: 2 visible"));
}

}  // namespace
}  // namespace epsweep
