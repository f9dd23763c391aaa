#include "base/text.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "base/error.h"

namespace epsweep {
namespace {

using testing::HasSubstr;

TEST(Nearest, PrefersTheFewestEdits) {
  EXPECT_EQ(nearest("zipf_aplha", {"seed", "zipf_alpha", "zipf_beta"}), "zipf_alpha");
  EXPECT_EQ(nearest("hot_fracton", {"num_hot", "hot_fraction"}), "hot_fraction");
}

TEST(Nearest, OffersNothingForAWordThatIsLikeNone) {
  EXPECT_EQ(nearest("qqqqqqqq", {"seed", "layers"}), "");
  EXPECT_EQ(nearest("seed", {}), "");
}

TEST(Text, DevicesAreNotRead) {  // /dev/zero would never end
  EXPECT_THROW(read_text_file("/dev/zero"), ConfigError);
}

TEST(Text, NearestLooksAtNoHopelessCandidate) {
  // 10 MB against 4 letters: a table of edit distances would take 400 MB.
  EXPECT_EQ(nearest(std::string(10'000'000, 'x'), {"seed"}), "");
}

TEST(Text, ChecksumOfAFolderIsThatOfItsFilesInNameOrder) {
  const std::filesystem::path folder = ::testing::TempDir() + "epsweep_checksum";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder / "inner");
  const auto write = [&](const char* name, const char* text) {
    std::ofstream(folder / name, std::ios::binary) << text;
  };
  write("b", "two");
  write("a", "one");
  EXPECT_EQ(file_names(folder.string()), (std::vector<std::string>{"a", "b"}));
  const std::string base = path_checksum(folder.string());
  write("b", "twp");
  EXPECT_NE(path_checksum(folder.string()), base);
  write("b", "two");
  EXPECT_EQ(path_checksum(folder.string()), base);
  write("inner/c", "not looked at");
  EXPECT_EQ(path_checksum(folder.string()), base);
  std::filesystem::rename(folder / "b", folder / "c");
  EXPECT_NE(path_checksum(folder.string()), base);
  EXPECT_EQ(path_checksum((folder / "a").string()), text_checksum("one"));
  EXPECT_THROW(path_checksum((folder / "none").string()), ConfigError);
}

TEST(Text, ReadsAnEmptyFileAndNamesAMissingOne) {
  const std::string empty = ::testing::TempDir() + "epsweep_empty.txt";
  std::ofstream(empty, std::ios::binary).close();
  EXPECT_EQ(read_text_file(empty), "");
  try {
    read_text_file("/no/such/file");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/no/such/file: cannot be read: No such file"));
  }
}

TEST(Text, HexHasSixteenDigits) {
  EXPECT_EQ(hex64(0xabc), "0000000000000abc");
}

}  // namespace
}  // namespace epsweep
