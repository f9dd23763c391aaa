#include "workload/safetensors.h"

#include <limits>

#include <gmock/gmock.h>

#include "safetensors_file.h"
#include "sample_points.h"

namespace epsweep {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Safetensors, ReadsEveryDtype) {
  const std::string file = SafetensorsFile()
                               .add<std::int64_t>("a", "I64", {2}, {-3, 1LL << 60})
                               .add<double>("b", "F64", {1, 2}, {0.1, -2})
                               .add<std::int32_t>("c", "I32", {2, 1}, {7, -8})
                               .add<float>("d", "F32", {2}, {1.5F, 16777216})
                               .add<std::int16_t>("e", "I16", {}, {-9})
                               // 1.0, the least subnormal 2^-24 and -65504, the largest.
                               .add<std::uint16_t>("f", "F16", {3}, {0x3c00, 0x0001, 0xfbff})
                               .add<std::uint16_t>("g", "BF16", {2}, {0x3f80, 0xc040})
                               .add<std::uint8_t>("h", "U8", {2}, {0, 255})
                               .add<std::int8_t>("i", "I8", {1}, {-128})
                               .add<std::int8_t>("j", "I8", {0, 4}, {})
                               .bytes();
  const std::vector<Tensor> tensors = read_safetensors(file, "x");
  ASSERT_EQ(tensors.size(), 10U);
  EXPECT_EQ(tensors[0].name, "a");
  EXPECT_THAT(tensors[1].shape, ElementsAre(1, 2));
  EXPECT_THAT(tensor_integers(tensors[0]), ElementsAre(-3, 1LL << 60));
  EXPECT_THAT(tensor_numbers(tensors[1]), ElementsAre(0.1, -2));
  EXPECT_THAT(tensor_integers(tensors[2]), ElementsAre(7, -8));
  EXPECT_THAT(tensor_numbers(tensors[3]), ElementsAre(1.5, 16777216));
  EXPECT_THAT(tensor_integers(tensors[4]), ElementsAre(-9));
  EXPECT_THAT(tensor_numbers(tensors[5]), ElementsAre(1, 0x1p-24, -65504));
  EXPECT_THAT(tensor_numbers(tensors[6]), ElementsAre(1, -3));
  EXPECT_THAT(tensor_integers(tensors[7]), ElementsAre(0, 255));
  EXPECT_THAT(tensor_numbers(tensors[8]), ElementsAre(-128));
  EXPECT_TRUE(tensor_integers(tensors[9]).empty());
}

TEST(Safetensors, ValuesThatCannotBeCountsAreRefused) {
  const std::string file =
      SafetensorsFile()
          .add<double>("n", "F64", {2}, {1, std::numeric_limits<double>::quiet_NaN()})
          .add<std::uint16_t>("o", "F16", {1}, {0x7c00})
          .bytes();
  const std::vector<Tensor> tensors = read_safetensors(file, "x");
  EXPECT_THAT(config_error([&] { tensor_numbers(tensors[0]); }),
              HasSubstr("x: tensor 'n': value 1 is nan"));
  EXPECT_THAT(config_error([&] { tensor_numbers(tensors[1]); }), HasSubstr("value 0 is inf"));
  EXPECT_THAT(config_error([&] { tensor_integers(tensors[0]); }),
              HasSubstr("holds F64, expected whole numbers"));
}

TEST(Safetensors, BadFilesAreNamedWithTheTensor) {
  struct Case {
    std::string header;
    std::size_t num_bytes;
    std::string expected;
  };
  const auto entry = [](const char* dtype, const char* shape, const char* offsets) {
    return fmt::format(R"({{"t":{{"dtype":"{}","shape":{},"data_offsets":{}}}}})", dtype, shape,
                       offsets);
  };
  const std::string two = R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":)";
  const std::vector<Case> cases = {
      {entry("I65", "[1]", "[0,8]"), 8, "dtype 'I65' is not one of I64"},
      {R"({"t":{"shape":[1],"data_offsets":[0,8]}})", 8, "has no dtype"},
      {R"({"t":{"dtype":"U8","shape":[1]}})", 1, "has no data_offsets"},
      {R"({"t":7})", 8, "is not described by an object"},
      {R"([1])", 8, "not a JSON object"},
      {R"({"t":)", 8, "not valid JSON"},
      {entry("I64", "[2]", "[0,8]"), 16, "shape [2] of I64 needs 16 bytes"},
      {entry("I64", "[1]", "[0,16]"), 16, "needs 8 bytes, data_offsets have 16"},
      {entry("I64", "[1]", "[0,8]"), 7, "data_offsets holds 8, the file has 7 bytes"},
      {entry("U8", "[1]", "[5,4]"), 8, "not a begin and an end"},
      {entry("U8", "[1]", "[0,1,2]"), 8, "not a begin and an end"},
      {entry("U8", "[1]", "[0]"), 8, "not a begin and an end"},
      {entry("U8", "[-1]", "[0,1]"), 1, "something else than whole numbers"},
      {entry("U8", "[1.0]", "[0,1]"), 1, "something else than whole numbers"},
      {entry("U8", "1", "[0,1]"), 1, "shape is not a list"},
      {entry("U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]"), 1, "at most 8 sizes"},
      // 2^62 * 4 overflows to 0 in 64 bits.
      {entry("U8", "[4611686018427387904,4]", "[0,0]"), 0, "the file has 0 bytes"},
      {entry("I64", "[4,4,4,4]", "[0,8]"), 8, "larger than the 8 bytes"},
      {two + R"({"dtype":"U8","shape":[4],"data_offsets":[2,6]}})", 6, "'b': begins at byte 2"},
      {two + R"({"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 4, "'b': begins at byte 0"},
      {two + R"({"dtype":"U8","shape":[2],"data_offsets":[5,7]}})", 7, "'b': begins at byte 5"},
      {two + R"({"dtype":"I32","shape":[1],"data_offsets":[5,9]}})", 9, "not aligned"},
      {entry("U8", "[4]", "[0,4]"), 6, "2 of them belong to none"},
      {"{}", 3, "3 of them belong to none"},
      {R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"t":{}})", 1, "appears twice"},
  };
  for (const Case& bad : cases) {
    const std::string file = safetensors_of(bad.header, std::string(bad.num_bytes, '\0'));
    EXPECT_THAT(config_error([&] { read_safetensors(file, "f.safetensors"); }),
                AllOf(HasSubstr("f.safetensors"), HasSubstr(bad.expected)))
        << bad.header;
  }
}

TEST(Safetensors, CutOffFilesAreRefused) {
  const std::string file = SafetensorsFile().add<std::int64_t>("a", "I64", {2}, {1, 2}).bytes();
  EXPECT_EQ(config_error([&] { read_safetensors(file, "x"); }), "");
  for (std::size_t size = 0; size < file.size(); ++size) {
    EXPECT_NE(config_error([&] { read_safetensors(file.substr(0, size), "x"); }), "") << size;
  }
  EXPECT_THAT(config_error([] { read_safetensors(std::string(8, '\xff'), "x"); }),
              HasSubstr("a header of 18446744073709551615 bytes in a file of 8"));
}

// A header of 58 layers x 1,000 iterations: seconds, were each key compared with all before it.
TEST(Safetensors, ManyTensorsAreReadQuickly) {
  SafetensorsFile file;
  for (int i = 0; i < 58'000; ++i) file.add<std::uint8_t>(std::to_string(i), "U8", {1}, {1});
  EXPECT_EQ(read_safetensors(file.bytes(), "x").size(), 58'000U);
}

}  // namespace
}  // namespace epsweep
