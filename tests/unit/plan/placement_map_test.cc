#include "plan/placement_map.h"

#include <gmock/gmock.h>

#include "base/error.h"

namespace epsweep {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

PlacementMap parse(const std::string& text) {
  return parse_placement_map(text, "m.yaml", 4);
}

std::string error_of(const std::string& text) {
  try {
    parse(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(PlacementMap, layers_are_sorted_by_number) {
  const PlacementMap map = parse(
      "num_slots: 6\n"
      "ep_size: 3\n"
      "layer_updates_per_iter: 0\n"
      "initial_global_assignments:\n"
      "  10: [3, 2, 1, 0, 0, 0]\n"
      "  9: [0, 1, 2, 3, 0, 1]\n");
  EXPECT_EQ(map.num_slots, 6);
  EXPECT_EQ(map.ep_size, 3);
  EXPECT_THAT(map.layer_numbers, ElementsAre(9, 10));
  EXPECT_THAT(map.slots_of_layer(0), ElementsAre(0, 1, 2, 3, 0, 1));
  EXPECT_THAT(map.slots_of_layer(1), ElementsAre(3, 2, 1, 0, 0, 0));
  EXPECT_EQ(map.label(), "m.yaml " + map.file_checksum.substr(0, 8));
}

TEST(PlacementMap, another_content_is_another_map) {
  const std::string text = "{num_slots: 4, initial_global_assignments: {0: [0, 1, 2, 3]}}";
  EXPECT_EQ(parse(text).file_checksum, parse(text).file_checksum);
  EXPECT_NE(parse(text).file_checksum,
            parse("{num_slots: 4, initial_global_assignments: {0: [0, 1, 3, 2]}}").file_checksum);
}

TEST(PlacementMap, mistakes_are_named_with_their_place) {
  const auto with_slots = [](const std::string& slots) {
    return "num_slots: 4\ninitial_global_assignments:\n  3: " + slots;
  };
  EXPECT_EQ(error_of(with_slots("[0, 1, 2, 3]")), "no error");
  EXPECT_THAT(error_of(with_slots("[0, 1, 2, 4]")),
              AllOf(HasSubstr("m.yaml:3: initial_global_assignments.3.3"),
                    HasSubstr("4 is outside 0 to 3")));
  EXPECT_THAT(error_of(with_slots("[0, 1, 2, -1]")), HasSubstr("-1 is outside 0 to 3"));
  EXPECT_THAT(error_of(with_slots("[0, 1, 1, 1]")), HasSubstr("2 of 4 experts have no slot: 2, 3"));
  EXPECT_THAT(error_of(with_slots("[0, 1, 2]")), HasSubstr("lists 3 slots, num_slots is 4"));
  EXPECT_THAT(error_of(with_slots("7")), HasSubstr("expected a list"));
  EXPECT_THAT(error_of("num_slots: 4\ninitial_global_assignments: {}"),
              HasSubstr("expected a map"));
  EXPECT_THAT(error_of("{num_slots: 4, initial_global_assignments: {x: [0, 1, 2, 3]}}"),
              HasSubstr("'x' is not the number of a layer"));
  EXPECT_THAT(error_of("num_slots: 4\ninitial_global_assignments:\n  3: [0, 1, 2, 3]\n"
                       "  03: [0, 1, 2, 3]"),
              HasSubstr("layer 3 already stands on line 3"));
  EXPECT_THAT(error_of("{num_slots: 3, initial_global_assignments: {0: [0, 1, 2]}}"),
              HasSubstr("3 slots are fewer than the model's 4 experts"));
  EXPECT_THAT(error_of("{initial_global_assignments: {0: [0, 1, 2, 3]}}"),
              HasSubstr("'num_slots' is missing"));
  EXPECT_THAT(error_of("num_slots: 4"), HasSubstr("'initial_global_assignments' is missing"));
  EXPECT_THAT(error_of(with_slots("[0, 1, 2, 3]\nlayer_updates_per_iter: 1")),
              AllOf(HasSubstr("m.yaml:4"), HasSubstr("static")));
  EXPECT_THAT(error_of(with_slots("[0, 1, 2, 3]\nep_size: 3")),
              HasSubstr("num_slots 4 is not divisible by 3"));
  EXPECT_THAT(error_of(with_slots("[0, 1, 2, 3]\nep_sizes: 2")),
              HasSubstr("nearest valid key: 'ep_size'"));
}

TEST(PlacementMap, missing_layers_are_refused_naming_those_there_are) {
  const PlacementMap map =
      parse("{num_slots: 4, initial_global_assignments: {3: [0, 1, 2, 3], 5: [0, 1, 2, 3]}}");
  EXPECT_NO_THROW(check_map_layers(map, 2));
  try {
    check_map_layers(map, 3);
    ADD_FAILURE() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("places 2 layers (3, 5)"), HasSubstr("has 3"),
                                    HasSubstr("layer 2 (from 0) is missing")));
  }
}

}  // namespace
}  // namespace epsweep
