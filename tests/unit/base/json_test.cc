#include "base/json.h"

#include <cmath>

#include <gmock/gmock.h>

#include "base/error.h"

namespace epsweep {
namespace {

using testing::HasSubstr;

std::string error_of(std::string_view text) {
  try {
    parse_json(text, "file.json");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Json, WritesUndefinedNumbersAsNull) {
  const Json json = {{"nan", std::nan("")}, {"inf", INFINITY}, {"x", 0.5}};
  EXPECT_EQ(to_json_line(json), R"({"nan":null,"inf":null,"x":0.5})");
  EXPECT_EQ(to_json_line(json_or_null(std::optional<double>())), "null");
}

TEST(Json, KeepsTheOrderOfKeysAndLargeCounts) {
  const Json json = parse_json(R"({"z": 9007199254740993, "a": 1})", "file.json");
  EXPECT_EQ(to_json_line(json), R"({"z":9007199254740993,"a":1})");
}

TEST(Json, NamesFileAndLineOfASyntaxError) {
  EXPECT_THAT(error_of("{\n\"a\": 1,\n}"), HasSubstr("file.json:3"));
}

TEST(Json, RefusesARepeatedKeyButNotTheSameKeyInTwoObjects) {
  EXPECT_THAT(error_of(R"({"a": {"b": 1, "b": 2}})"), HasSubstr("'b' appears twice"));
  EXPECT_EQ(error_of(R"([{"b": 1}, {"b": 2}])"), "no error");
}

}  // namespace
}  // namespace epsweep
