#include <gmock/gmock.h>

#include "base/error.h"
#include "plan/yaml_reader.h"

namespace epsweep {
namespace {

using testing::HasSubstr;

template <typename Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

YamlNode parse(const std::string& text) {
  return parse_yaml(text, "x.yaml");
}

TEST(YamlTree, RemembersLinesAndPaths) {
  const YamlNode root = parse("a: 1\nb:\n  - c: 2\n");
  const YamlNode& c = root.entries[1].value.items[0].entries[0].value;
  EXPECT_EQ(c.where(), "x.yaml:3: b.0.c");
  EXPECT_EQ(c.scalar, "2");
}

TEST(YamlTree, RefusesWhatIsNotOneCleanDocument) {
  EXPECT_THAT(error_of([] { parse("a: 1\nb: [1\n"); }), HasSubstr("x.yaml:"));
  EXPECT_THAT(error_of([] { parse("a: 1\nb: 2\na: 3\n"); }),
              HasSubstr("x.yaml:3: a: this key already stands on line 1"));
  EXPECT_THAT(error_of([] { parse("? [1, 2]\n: x\n"); }), HasSubstr("a key must be a plain word"));
  EXPECT_THAT(error_of([] { parse("a: 1\n---\nb: 2\n"); }), HasSubstr("2 documents"));
}

TEST(YamlTree, RefusesNestingAndAliasesThatExplode) {
  EXPECT_THAT(error_of([] { parse(std::string(100, '[') + std::string(100, ']')); }),
              HasSubstr("nested too deeply"));
  std::string bomb = "a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n";
  for (int i = 1; i < 9; ++i) {
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 10; ++j) bomb += (j == 0 ? "*a" : ",*a") + std::to_string(i - 1);
    bomb += "]\n";
  }
  EXPECT_THAT(error_of([&] { parse(bomb); }), HasSubstr("too large"));
}

TEST(YamlTree, RefusesTextsThatTakeTooMuchRoom) {
  EXPECT_THAT(error_of([] { parse("# " + std::string(5'000'000, 'x')); }),
              HasSubstr("5000002 bytes, expected at most 4194304"));
  EXPECT_THAT(error_of([] { parse(std::string(201, 'k') + ": 1\n"); }),
              HasSubstr("x.yaml:1: a key longer than 200 characters"));
  EXPECT_EQ(parse(std::string(200, 'k') + ": 1\n").entries.size(), 1U);
  // 1 MB, repeated by 100 aliases.
  std::string repeated = "a: &a " + std::string(1'000'000, 'x') + "\nb:\n";
  for (int i = 0; i < 100; ++i) repeated += "- *a\n";
  EXPECT_THAT(error_of([&] { parse(repeated); }), HasSubstr("too large"));
}

// yaml-cpp 0.7 finds documents in these without end.
TEST(YamlTree, TextThatBelongsToNothingIsRefused) {
  for (const char* text : {", a", "]", "}", ", The main job: x\nmodel: y\n", "a: 1\n]\n"}) {
    EXPECT_THAT(error_of([&] { parse(text); }), HasSubstr("x.yaml")) << text;
  }
  EXPECT_EQ(parse("").kind, YamlNode::Kind::null);
  EXPECT_EQ(parse("# nothing\n").kind, YamlNode::Kind::null);
  EXPECT_EQ(parse("---\na: 1\n").entries.size(), 1U);
}

TEST(YamlTree, AnAliasOfItselfIsRefused) {
  EXPECT_THAT(error_of([] { parse("a: &a [*a]\n"); }), HasSubstr("x.yaml:1"));
}

// A minute, were each key compared with all before it.
TEST(YamlTree, ManyKeysAreReadQuickly) {
  std::string text;
  for (int i = 0; i < 90'000; ++i) text += "k" + std::to_string(i) + ": 1\n";
  EXPECT_EQ(parse(text).entries.size(), 90'000U);
}

TEST(YamlTree, OverridesWinAndMakeMissingMaps) {
  YamlNode root = parse("a: {b: 1}\nl: [1, 2]\n");
  apply_override(root, "a.b=2");
  apply_override(root, "c.d=[3, 4]");
  apply_override(root, "l.1=5");
  EXPECT_EQ(root.entries[0].value.entries[0].value.scalar, "2");
  EXPECT_EQ(root.entries[2].value.entries[0].value.items[1].scalar, "4");
  EXPECT_EQ(root.entries[2].value.entries[0].value.items[1].path, "c.d.1");
  EXPECT_EQ(root.entries[1].value.items[1].scalar, "5");
}

TEST(YamlTree, RefusesOverridesThatFitNowhere) {
  YamlNode root = parse("a: 1\nl: [1, 2]\n");
  EXPECT_THAT(error_of([&] { apply_override(root, "novalue"); }), HasSubstr("dotted.path=value"));
  EXPECT_THAT(error_of([&] { apply_override(root, "l.2=5"); }), HasSubstr("list of 2"));
  EXPECT_THAT(error_of([&] { apply_override(root, "a.b=5"); }), HasSubstr("single value"));
}

TEST(YamlReader, CountsAreWholePlainNumbersInRange) {
  const YamlNode root = parse("[3, +4, 3.0, 1e3, '3', -1, 99999999999999999999, x, ~]");
  EXPECT_EQ(read_count(root.items[0], 0, 10), 3);
  EXPECT_EQ(read_count(root.items[1], 0, 10), 4);
  for (std::size_t i = 2; i < root.items.size(); ++i) {
    EXPECT_THROW(read_count(root.items[i], 0, 10), ConfigError) << i;
  }
  EXPECT_THAT(error_of([&] { read_count(root.items[5], 0, 10); }), HasSubstr("outside 0 to 10"));
}

TEST(YamlReader, NumbersFlagsAndChoices) {
  const YamlNode root = parse("[1.5, nan, true, yes, zpif]");
  EXPECT_EQ(read_number(root.items[0], 0, 2), 1.5);
  EXPECT_THROW(read_number(root.items[0], 0, 1), ConfigError);
  EXPECT_THROW(read_number(root.items[1], 0, 1), ConfigError);
  EXPECT_TRUE(read_flag(root.items[2]));
  EXPECT_THROW(read_flag(root.items[3]), ConfigError);
  EXPECT_THAT(error_of([&] {
                read_choice(root.items[4], {"uniform", "zipf"});
              }),
              HasSubstr("(nearest: 'zipf')"));
}

TEST(YamlReader, EmptyListsAreErrors) {
  EXPECT_THAT(error_of([] { read_items(parse("a: []").entries[0].value); }),
              HasSubstr("x.yaml:1: a: the list is empty"));
}

TEST(MapReader, NamesTheNearestKeyAndMissingOnes) {
  const YamlNode root = parse("wramup: 1\n");
  EXPECT_THAT(error_of([&] {
                MapReader(root, {"warmup", "seed"});
              }),
              HasSubstr("x.yaml:1: wramup: unknown key (nearest valid key: 'warmup')"));
  EXPECT_THAT(error_of([] {
                MapReader(parse("a: 1"), {"a", "b"}).require("b");
              }),
              HasSubstr("the key 'b' is missing"));
  EXPECT_THAT(error_of([] { MapReader(parse("[1]"), {"a"}); }), HasSubstr("expected a map"));
}

}  // namespace
}  // namespace epsweep
