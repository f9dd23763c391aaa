// Who may include whom, which third-party headers belong where, and how long files may get.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace epsweep {
namespace {

namespace fs = std::filesystem;

const fs::path kSource = fs::path(EPSWEEP_SOURCE_DIR) / "src";

// Folder -> folders it may include besides itself. What is not listed may include nothing of ours.
const std::map<std::string, std::set<std::string>> kAllowed = {
    {"base", {}},
    {"plan", {"base"}},
    {"workload", {"base", "plan"}},
    {"costs", {"base", "plan", "workload"}},
    {"device", {"base"}},
    {"mpi", {"base"}},
    {"cpu", {"base", "device", "mpi"}},
    {"cuda", {"base", "device", "mpi"}},
    // Its times are tables of the report, its faults those of real ranks, its costs of the routing.
    {"sim", {"base", "plan", "workload", "costs", "device", "faults", "report"}},
    {"faults", {"base", "device"}},
    {"ceilings", {"base", "device"}},
    {"pipeline", {"base", "plan", "workload", "device"}},
    {"report", {"base", "plan", "costs", "workload"}},
    {"app",
     {"base", "plan", "workload", "costs", "device", "mpi", "cpu", "cuda", "sim", "faults",
      "ceilings", "pipeline", "report"}},
};

// Beginning of a third-party header -> where it may be included: a folder, or one file.
const std::map<std::string, std::vector<std::string>> kThirdParty = {
    {"mpi.h", {"mpi/", "cpu/", "cuda/"}},
    {"cuda", {"cuda/"}},
    {"nccl", {"cuda/"}},
    {"cublas", {"cuda/"}},
    {"nvtx", {"cuda/"}},
    {"cutlass", {"cuda/optional/"}},
    {"cute", {"cuda/optional/"}},
    {"oneapi/dnnl", {"cpu/onednn_code"}},
    {"dnnl", {"cpu/onednn_code"}},
    {"yaml-cpp", {"plan/yaml_tree.cc"}},
    {"spdlog", {"base/log.cc"}},
    {"nlohmann", {"base/json.h", "report/"}},
    {"CLI", {"app/main.cc"}},
};

struct SourceFile {
  std::string name;  // from src/
  std::vector<std::string> lines;
  std::string folder() const { return name.substr(0, name.find('/')); }
};

std::vector<SourceFile> source_files() {
  std::vector<SourceFile> files;
  for (const auto& entry : fs::recursive_directory_iterator(kSource)) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".h" && extension != ".cc" && extension != ".cu") continue;
    SourceFile file{fs::relative(entry.path(), kSource).string(), {}};
    std::ifstream stream(entry.path());
    for (std::string line; std::getline(stream, line);) file.lines.push_back(line);
    files.push_back(std::move(file));
  }
  return files;
}

// The text between the quotes or brackets of every #include of that kind.
std::vector<std::string> includes(const SourceFile& file, const char* pattern) {
  std::vector<std::string> found;
  const std::regex include(pattern);
  for (const std::string& line : file.lines) {
    std::smatch match;
    if (std::regex_search(line, match, include)) found.push_back(match[1]);
  }
  return found;
}

TEST(Layering, ThereAreSourceFiles) {
  EXPECT_GT(source_files().size(), 50U);
}

TEST(Layering, FoldersIncludeOnlyWhatTheyMay) {
  for (const SourceFile& file : source_files()) {
    ASSERT_TRUE(kAllowed.contains(file.folder())) << file.name << " is in a folder without a rule";
    for (const std::string& header : includes(file, "^\\s*#\\s*include\\s*\"([^\"]+)\"")) {
      const std::string target = header.substr(0, header.find('/'));
      EXPECT_TRUE(target == file.folder() || kAllowed.at(file.folder()).contains(target))
          << file.name << " includes " << header;
    }
  }
}

TEST(Layering, ThirdPartyHeadersStayInTheirPlaces) {
  for (const SourceFile& file : source_files()) {
    for (const std::string& header : includes(file, "^\\s*#\\s*include\\s*<([^>]+)>")) {
      for (const auto& [prefix, places] : kThirdParty) {
        if (!header.starts_with(prefix)) continue;
        EXPECT_TRUE(std::ranges::any_of(
            places, [&](const std::string& place) { return file.name.starts_with(place); }))
            << file.name << " includes <" << header << ">";
      }
    }
  }
}

TEST(Layering, NoConditionalCompilation) {
  const std::regex conditional("^\\s*#\\s*(if|ifdef|ifndef|elif)\\b");
  for (const SourceFile& file : source_files()) {
    for (const std::string& line : file.lines) {
      EXPECT_FALSE(std::regex_search(line, conditional)) << file.name << ": " << line;
    }
  }
}

TEST(Layering, FilesStayBelow350Lines) {
  for (const SourceFile& file : source_files()) {
    EXPECT_LE(file.lines.size(), 350U) << file.name;
  }
}

TEST(Layering, NoFileIsCalledAfterNothing) {
  for (const SourceFile& file : source_files()) {
    const std::string stem = fs::path(file.name).stem().string();
    for (const char* word : {"util", "common", "helper", "manager", "misc"}) {
      EXPECT_EQ(stem.find(word), std::string::npos) << file.name;
    }
  }
}

}  // namespace
}  // namespace epsweep
