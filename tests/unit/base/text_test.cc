#include "base/text.h"

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

TEST(Text, ReadsAnEmptyFileAndNamesAMissingOne) {
  EXPECT_EQ(read_text_file("/dev/null"), "");
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
