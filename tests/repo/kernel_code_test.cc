// What nvcc made of the kernels: no spilled registers, no stack, 16-byte loads where rows are
// moved.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "support/program.h"

namespace epsweep {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> kernel_objects() {
  std::vector<std::string> objects;
  std::istringstream list(EPSWEEP_KERNEL_OBJECTS);
  for (std::string object; std::getline(list, object, ',');) objects.push_back(object);
  return objects;
}

struct KernelCode {
  int functions = 0;
  std::vector<std::string> problems;
};

// Of a report of ptxas -v, which names a function and gives its stack and spills in the next line.
KernelCode read_report(const std::string& report) {
  static const std::regex kProperties(
      R"((\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads)");
  KernelCode code;
  std::string function;
  std::istringstream lines(report);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t name = line.find("Function properties for ");
    if (name != std::string::npos) function = line.substr(name + 24);
    std::smatch found;
    if (!std::regex_search(line, found, kProperties)) continue;
    ++code.functions;
    if (found[1] != "0" || found[2] != "0" || found[3] != "0") {
      code.problems.push_back(function + ": " + found[0].str());
    }
  }
  return code;
}

// Whether a kernel by that mangled name moves rows in 16-byte pieces: the wide instances of those
// that permute and of those that add up, and those that quantise.
bool moves_wide(const std::string& name) {
  const bool copies = name.find("scatter_kernel") != std::string::npos ||
                      name.find("gather_kernel") != std::string::npos ||
                      name.find("move_kernel") != std::string::npos;
  const bool adds = name.find("reduce_kernel") != std::string::npos;
  const bool quantises = name.find("quantise_kernel") != std::string::npos ||
                         name.find("quantise_1x128_kernel") != std::string::npos;
  return quantises || (copies && name.find("5uint4") != std::string::npos) ||
         (adds && name.find("Li1E") == std::string::npos);
}

// Names of wide kernels, and whether a line of each one's text matches. `begin` starts a kernel's
// text and captures its name.
std::map<std::string, bool> find_in_wide_kernels(const std::string& text, const std::regex& begin,
                                                 const std::regex& wanted) {
  std::map<std::string, bool> found;
  std::string kernel;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_search(line, match, begin)) {
      kernel = match[1];
      if (moves_wide(kernel)) found[kernel] = false;
    } else if (found.contains(kernel) && std::regex_search(line, wanted)) {
      found[kernel] = true;
    }
  }
  return found;
}

std::string output_of(const std::string& command) {
  const TempDir dir;
  const int status = std::system(fmt::format("{} >{} 2>&1", command, dir.path("out")).c_str());
  const std::string text = read_text_file(dir.path("out"));
  EXPECT_EQ(status, 0) << command << '\n' << text;
  return text;
}

void expect_all(const std::map<std::string, bool>& found, std::size_t least, const char* what) {
  EXPECT_GE(found.size(), least);
  for (const auto& [kernel, has] : found) EXPECT_TRUE(has) << kernel << ": no " << what;
}

// Wide kernels: scatter, gather and move; sums of equal segments of bf16 and fp32 rows, and of
// listed segments of either to either; inputs to e4m3 in two ways.
constexpr const char* kMovingFiles[] = {"copy_rows", "reduce_rows", "quantise"};
constexpr std::size_t kWideCopies = 3, kWideSums = 6, kQuantising = 2;

std::size_t least_of(const std::string& file) {
  if (file == "quantise") return kQuantising;
  return file == "copy_rows" ? kWideCopies : kWideSums;
}

TEST(KernelCode, reports_are_understood) {
  const KernelCode code = read_report(
      "ptxas info    : Function properties for good\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Function properties for stacked\n"
      "    32 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Function properties for spilled\n"
      "    0 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n");
  EXPECT_EQ(code.functions, 3);
  ASSERT_EQ(code.problems.size(), 2U);
  EXPECT_EQ(code.problems[0].substr(0, 12), "stacked: 32 ");
  EXPECT_EQ(code.problems[1].substr(0, 8), "spilled:");
}

TEST(KernelCode, no_kernel_spills_or_has_a_stack) {
  if (kernel_objects().empty()) GTEST_SKIP() << "the CUDA engine is not built here";
  for (const std::string& object : kernel_objects()) {
    SCOPED_TRACE(object);
    ASSERT_TRUE(fs::exists(object + ".report"))
        << "kernels are compiled through cmake/keep_report.sh";
    const KernelCode code = read_report(read_text_file(object + ".report"));
    EXPECT_GT(code.functions, 0);
    for (const std::string& problem : code.problems) ADD_FAILURE() << problem;
  }
}

// The compiler's intermediate text: what ptxas is asked for.
TEST(KernelCode, rows_are_moved_by_wide_loads_in_ptx) {
  const std::string nvcc = EPSWEEP_NVCC;
  if (kernel_objects().empty()) GTEST_SKIP() << "the CUDA engine is not built here";
  const TempDir dir;
  for (const std::string file : kMovingFiles) {
    output_of(
        fmt::format("{} -std=c++17 -arch=sm_90 --expt-relaxed-constexpr -I{}/src -ptx "
                    "{}/src/cuda/kernels/{}.cu -o {}",
                    nvcc, EPSWEEP_SOURCE_DIR, EPSWEEP_SOURCE_DIR, file, dir.path("ptx")));
    expect_all(
        find_in_wide_kernels(read_text_file(dir.path("ptx")), std::regex(R"(\.entry (\w+)\()"),
                             std::regex(R"(ld\.global[.\w:]*\.(v4\.[ubf]32|v2\.[ubf]64|b128))")),
        least_of(file), "128-bit load");
  }
}

// What the GPU runs.
TEST(KernelCode, rows_are_moved_by_wide_loads_in_machine_code) {
  const std::string cuobjdump = EPSWEEP_CUOBJDUMP;
  if (kernel_objects().empty()) GTEST_SKIP() << "the CUDA engine is not built here";
  if (cuobjdump.empty()) {
    GTEST_SKIP() << "cuobjdump is not installed: machine code was not looked at, PTX was";
  }
  for (const std::string file : kMovingFiles) {
    const auto objects = kernel_objects();
    const auto object = std::ranges::find_if(objects, [&](const std::string& name) {
      return name.find("/" + file + ".cu") != std::string::npos;
    });
    ASSERT_NE(object, objects.end()) << file;
    expect_all(
        find_in_wide_kernels(output_of(cuobjdump + " -sass " + *object),
                             std::regex(R"(Function : (\w+))"), std::regex(R"(LDG\.E[.\w]*\.128)")),
        least_of(file), "128-bit load");
  }
}

}  // namespace
}  // namespace epsweep
