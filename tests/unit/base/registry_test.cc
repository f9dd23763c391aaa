#include "base/registry.h"

#include <gmock/gmock.h>

namespace epsweep {
namespace {

struct Entry {
  std::string name;
  int value = 0;
};

TEST(Registry, NamesAreSortedWhateverTheOrderOfAdding) {
  Registry<Entry> registry;
  registry.add({"b", 2});
  registry.add({"a", 1});
  EXPECT_THAT(registry.names(), testing::ElementsAre("a", "b"));
  EXPECT_EQ(registry.at("b").value, 2);
  EXPECT_FALSE(registry.contains("c"));
  EXPECT_THROW(registry.at("c"), RunError);
}

TEST(RegistryDeathTest, TwoEntriesOfOneNameEndTheProgram) {
  Registry<Entry> registry;
  registry.add({"a", 1});
  EXPECT_DEATH(registry.add({"a", 2}), "two catalog entries are called 'a'");
}

}  // namespace
}  // namespace epsweep
