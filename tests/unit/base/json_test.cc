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

TEST(Json, DeepNestingAndManyKeysAreRefused) {
  const auto verdict = [](const std::string& text) -> std::string {
    try {
      parse_json(text, "x");
      return "";
    } catch (const ConfigError& error) {
      return error.what();
    }
  };
  EXPECT_EQ(verdict(std::string(100, '[') + std::string(100, ']')), "");
  EXPECT_NE(verdict(std::string(101, '[') + std::string(101, ']')).find("nested more than 100"),
            std::string::npos);
  EXPECT_NE(verdict(std::string(1'000'000, '[')).find("nested more than 100"), std::string::npos);
  std::string many = "{";
  for (int i = 0; i <= 10'000; ++i) many += "\"" + std::to_string(i) + "\":0,";
  many.back() = '}';
  EXPECT_NE(verdict(many).find("more than 10000 keys"), std::string::npos);
  EXPECT_EQ(parse_sorted_json(many, "x").size(), 10'001U);
  EXPECT_NE(verdict("[1e999]").find("not valid JSON"), std::string::npos);
}

// Minutes, were all earlier members looked at again whenever one ends.
TEST(Json, ManyMembersAreReadQuickly) {
  std::string list = "[", object = "{";
  for (int i = 0; i < 300'000; ++i) {
    list += "{},";
    object += "\"" + std::to_string(i) + "\":[],";
  }
  list.back() = ']';
  object.back() = '}';
  EXPECT_EQ(parse_json(list, "x").size(), 300'000U);
  EXPECT_EQ(parse_sorted_json(object, "x").size(), 300'000U);
}

TEST(Json, ExcerptsAreShortAndWhole) {
  EXPECT_EQ(json_excerpt(Json{1, 2}), "[1,2]");
  EXPECT_EQ(json_excerpt(Json(std::string(500, 'x'))).size(), 123U);
  std::string umlauts;
  for (int i = 0; i < 200; ++i) umlauts += "\u00e4";
  const std::string excerpt = json_excerpt(Json(umlauts));
  EXPECT_EQ(excerpt.size(), 122U);  // a quote, 59 whole letters of 2 bytes, three dots
}

}  // namespace
}  // namespace epsweep
