// The launch scripts where nothing can be started: syntax, mistakes, missing packages and rights.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "base/text.h"
#include "support/program.h"

namespace epsweep {
namespace {

namespace fs = std::filesystem;

const fs::path kLaunch = fs::path(EPSWEEP_SOURCE_DIR) / "launch";

class Launch : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("bash -c true >/dev/null 2>&1") != 0) GTEST_SKIP() << "there is no bash";
  }

  // A command that the scripts find in front of the machine's own.
  void stub(const std::string& name, const std::string& body) const {
    fs::permissions(dir_.write(name, "#!/bin/sh\n" + body + "\n"), fs::perms::owner_all);
  }

  ProgramResult shell(const std::string& command) const {
    const TempDir kept;
    const std::string line = fmt::format(
        "PATH={}:$PATH EPSWEEP_PROGRAM= EPSWEEP_MPIRUN_ARGS= timeout -k 5 30 {} "
        ">{} 2>{} </dev/null",
        dir_.path(""), command, kept.path("out"), kept.path("err"));
    const int status = std::system(line.c_str());
    return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
            .out = read_text_file(kept.path("out")),
            .err = read_text_file(kept.path("err"))};
  }
  ProgramResult script(const std::string& name, const std::string& arguments = "") const {
    return shell((kLaunch / name).string() + " " + arguments);
  }

  // What keeps a script from setting anything up on this machine, and one package missing.
  void machine_without_ninja() const {
    stub("dpkg-query", "case \"$*\" in *ninja-build*) exit 1;; esac; echo installed");
    for (const char* tool : {"apt-get", "cmake", "ctest", "mpirun"}) stub(tool, "exit 99");
    stub("id", "echo 1000");
  }

  TempDir dir_;
};

void expect_one_line(const ProgramResult& result, const std::string& text) {
  EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
  EXPECT_NE(result.err.find(text), std::string::npos) << result.err;
  EXPECT_EQ(result.out, "");
}

TEST_F(Launch, EveryScriptIsBash) {
  int scripts = 0;
  for (const auto& entry : fs::directory_iterator(kLaunch)) {
    const ProgramResult result = shell("bash -n " + entry.path().string());
    EXPECT_EQ(result.exit_code, 0) << result.err;
    ++scripts;
  }
  EXPECT_GE(scripts, 5);
}

TEST_F(Launch, MpirunSaysHowItIsUsed) {
  for (const char* arguments : {"", "0", "x run y", "-1 run y", "2x run y"}) {
    SCOPED_TRACE(arguments);
    const ProgramResult result = script("mpirun.sh", arguments);
    EXPECT_EQ(result.exit_code, 2);
    expect_one_line(result, "usage: launch/mpirun.sh RANKS ARGS...");
  }
}

TEST_F(Launch, MpirunNamesTheProgramThatIsNotBuilt) {
  const ProgramResult result = shell(fmt::format(
      "env EPSWEEP_PROGRAM={} {} 2 list", dir_.path("epsweep"), (kLaunch / "mpirun.sh").string()));
  EXPECT_EQ(result.exit_code, 1);
  expect_one_line(result, dir_.path("epsweep") + " is not built yet");
}

TEST_F(Launch, MpirunWorksThroughALinkAndKeepsTheExitCode) {
  stub("mpirun", "echo \"$@\"; exit 7");
  fs::create_symlink(kLaunch / "mpirun.sh", dir_.path("link"));
  const ProgramResult result = shell("env EPSWEEP_PROGRAM=/bin/true " + dir_.path("link 3 run x"));
  EXPECT_EQ(result.exit_code, 7) << result.err;
  EXPECT_EQ(result.out, "-q -np 3 /bin/true run x\n");
}

TEST_F(Launch, StoppedScriptStopsMpirunAndRemovesTheSharedFolder) {
  // The stub says where the ranks share memory, stops its script and waits to be told the same.
  stub("mpirun",
       "echo $OMPI_MCA_btl_vader_backing_directory\n"
       "trap 'kill $!; echo told; exit 1' TERM\n"
       "sleep 20 & kill -TERM $PPID; wait");
  const ProgramResult result =
      shell("env EPSWEEP_PROGRAM=/bin/true " + (kLaunch / "mpirun.sh").string() + " 3 run x");
  EXPECT_EQ(result.exit_code, 128 + 15) << result.err;
  const std::string folder = result.out.substr(0, result.out.find('\n'));
  EXPECT_EQ(result.out, folder + "\ntold\n");
  EXPECT_TRUE(folder.starts_with("/dev/shm/epsweep."));
  EXPECT_FALSE(fs::exists(folder));
}

TEST_F(Launch, MissingPackagesWithoutSudoAreOneLine) {
  machine_without_ninja();
  stub("sudo", "exit 127");  // one that is there and refuses says as much as none
  for (const char* name : {"test", "quickstart"}) {
    SCOPED_TRACE(name);
    const ProgramResult result = script(name);
    EXPECT_EQ(result.exit_code, 1);
    expect_one_line(result, "ask an administrator for: apt-get install ninja-build\n");
  }
}

// The function alone, with a build folder of its own.
std::string fetch_cutlass_into(const std::string& root) {
  return fmt::format("bash -c 'set -euo pipefail; . {}; epsweep_root={}; epsweep_fetch_cutlass'",
                     (kLaunch / "environment.sh").string(), root);
}

TEST_F(Launch, CutlassThatCannotBeFetchedIsANote) {
  stub("nvcc", "");
  stub("python3", "case $* in *--version) exit 0;; esac; echo warning; echo no network; exit 1");
  const ProgramResult result = shell(fetch_cutlass_into(dir_.path("root")));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out,
            "note: could not fetch nvidia-cutlass==4.2.0.0, so no CUTLASS kernels: no network\n");
  EXPECT_FALSE(fs::exists(dir_.path("root/build/cutlass")));
}

TEST_F(Launch, CutlassWithoutPipIsANote) {
  stub("nvcc", "");
  stub("python3", "exit 1");
  const ProgramResult result = shell(fetch_cutlass_into(dir_.path("root")));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(std::ranges::count(result.out, '\n'), 1) << result.out;
  EXPECT_NE(result.out.find("no pip for python3"), std::string::npos) << result.out;
}

TEST_F(Launch, CutlassIsFetchedOnceIntoTheBuildFolder) {
  stub("nvcc", "");
  // pip makes the folder that follows --target, and would fail if it were asked again.
  stub("python3",
       "case $* in *--version) exit 0;; esac\n"
       "while [ $1 != --target ]; do shift; done\n"
       "[ ! -e " +
           dir_.path("asked") + " ] && touch " + dir_.path("asked") + " && mkdir -p $2");
  for (int i = 0; i < 2; ++i) {
    const ProgramResult result = shell(fetch_cutlass_into(dir_.path("root")));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_TRUE(fs::is_directory(dir_.path("root/build/cutlass")));
    EXPECT_FALSE(fs::exists(dir_.path("root/build/cutlass.part")));
  }
}

TEST_F(Launch, SlurmScriptOutsideOfAJobIsOneLine) {
  const ProgramResult result =
      shell("env -u SLURM_JOB_ID bash " + (kLaunch / "slurm.sbatch").string() + " x");
  EXPECT_EQ(result.exit_code, 2);
  expect_one_line(result, "start with sbatch from the project's folder");
}

}  // namespace
}  // namespace epsweep
