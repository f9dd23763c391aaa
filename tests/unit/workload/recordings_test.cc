// Recordings of other programs: what their readers take, refuse and report.
#include <filesystem>

#include <gmock/gmock.h>

#include "safetensors_file.h"
#include "sample_points.h"
#include "workload/recordings/trtllm.h"
#include "workload/trace.h"

namespace epsweep {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Kind = RoutingNote::Kind;

std::string note_texts(const std::vector<RoutingNote>& notes, Kind kind) {
  std::string text;
  for (const RoutingNote& note : notes) {
    if (note.kind == kind) text += note.text + "\n";
  }
  return text;
}

// A folder that holds just these files.
std::string write_folder(const std::string& name,
                         const std::vector<std::pair<std::string, std::string>>& files) {
  const std::string folder = ::testing::TempDir() + "epsweep_" + name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  for (const auto& [file, text] : files) {
    std::ofstream(folder + "/" + file, std::ios::binary) << text;
  }
  return folder;
}

const std::string kMeta = R"({"num_experts": 3, "num_experts_per_token": 1, "other": "x"})";
using Counts = std::vector<std::int64_t>;

// Iterations 7 and 8; layer 1 is dense, layers 2 and 3 have experts.
SafetensorsFile rank_counts(std::int64_t first) {
  SafetensorsFile file;
  file.add<std::int64_t>("7_2", "I64", {3}, {first, 2, 3});
  file.add<std::int64_t>("7_3", "I64", {3}, {0, 4, first + 1});
  file.add<std::int64_t>("8_2", "I64", {3}, {10, 0, 0});
  file.add<std::int64_t>("8_3", "I64", {3}, {0, 0, 10});
  file.add<std::int64_t>("7_1", "I64", {3}, {0, 0, 0});
  file.add<std::int64_t>("8_1", "I64", {3}, {0, 0, 0});
  return file;
}

TEST(TrtllmCounts, AddsUpRanksAndIterations) {
  TrtllmCounts sum({.num_experts = 3, .top_k = 1});
  sum.add_rank(rank_counts(1).bytes(), "rank0");
  sum.add_rank(rank_counts(5).bytes(), "rank1");
  const RecordedCounts counts = sum.finish("folder", {});
  EXPECT_EQ(counts.num_experts, 3U);
  // Layer 2: {1+5, 2+2, 3+3} + {20, 0, 0}; layer 3: {0, 8, 2+6} + {0, 0, 20}.
  EXPECT_THAT(counts.layers, ElementsAre(ElementsAre(26, 4, 6), ElementsAre(0, 8, 28)));
  EXPECT_THAT(note_texts(counts.notes, Kind::note),
              AllOf(HasSubstr("recorded at EP size 2 with 1 experts per token"),
                    HasSubstr("iterations 7 to 8 of 7 to 8"),
                    HasSubstr("1 recorded layers of all zeros left out as dense: 1")));
  EXPECT_THAT(note_texts(counts.notes, Kind::warning), IsEmpty());
}

TEST(TrtllmCounts, CutChoosesIterations) {
  const auto layers = [](const Cut& cut) {
    TrtllmCounts sum({.num_experts = 3, .top_k = 1});
    sum.add_rank(rank_counts(1).bytes(), "rank0");
    return sum.finish("folder", cut).layers;
  };
  EXPECT_THAT(layers({.skip = 1}), ElementsAre(ElementsAre(10, 0, 0), ElementsAre(0, 0, 10)));
  EXPECT_THAT(layers({.max = 1}), ElementsAre(ElementsAre(1, 2, 3), ElementsAre(0, 4, 2)));
  EXPECT_THAT(config_error([&] { layers({.skip = 1, .max = 2}); }),
              HasSubstr("folder: skip_iterations 1 and max_iterations 2 need 3 iterations, 2 are"));
  EXPECT_NE(config_error([&] { layers({.skip = 2}); }), "");
}

TEST(TrtllmCounts, BadFilesAreNamed) {
  struct Case {
    SafetensorsFile file;
    std::string expected;
  };
  const auto one = [](const std::string& name, const Counts& counts) {
    return SafetensorsFile().add<std::int64_t>(name, "I64",
                                               {static_cast<std::int64_t>(counts.size())}, counts);
  };
  std::vector<Case> cases = {
      {one("0_0", {1, 2}), "tensor '0_0': shape [2], expected [3]"},
      {one("0_0", {1, -2, 3}), "tensor '0_0': expert 1: -2 is negative"},
      {one("0_0", {1, 1LL << 62, 3}), "is too large for a count"},
      {one("0", {1, 2, 3}), "tensor '0': the name is not"},
      {one("0_", {1, 2, 3}), "the name is not"},
      {one("-1_0", {1, 2, 3}), "the name is not"},
      {one("1_0_0", {1, 2, 3}), "the name is not"},
      {one("99999999999_0", {1, 2, 3}), "the name is not"},
      {one("0_0", {1, 2, 3}).add<std::int64_t>("00_0", "I64", {3}, {1, 2, 3}),
       "the same iteration"},
      {one("0_0", {1, 2, 3}).add<std::int64_t>("2_0", "I64", {3}, {1, 2, 3}),
       "iteration 1 layer 0 is missing before iteration 2 layer 0"},
      {one("0_0", {1, 2, 3})
           .add<std::int64_t>("0_1", "I64", {3}, {1, 2, 3})
           .add<std::int64_t>("1_0", "I64", {3}, {1, 2, 3}),
       "iteration 1 ends before layer 1"},
      {one("0_0", {1, 2, 3}).add<std::int64_t>("1_1", "I64", {3}, {1, 2, 3}),
       "iteration 1 layer 0 is missing"},
      {SafetensorsFile(), "holds no tensors"},
  };
  for (const Case& bad : cases) {
    EXPECT_THAT(config_error([&] {
                  TrtllmCounts sum({.num_experts = 3, .top_k = 1});
                  sum.add_rank(bad.file.bytes(), "rank0");
                  sum.finish("folder", {});
                }),
                HasSubstr(bad.expected));
  }
}

TEST(TrtllmCounts, RanksMustHoldTheSameTensors) {
  const auto add = [](const std::vector<std::string>& second) {
    TrtllmCounts sum({.num_experts = 1, .top_k = 1});
    SafetensorsFile file;
    for (const std::string& name : second) file.add<std::int64_t>(name, "I64", {1}, {1});
    sum.add_rank(SafetensorsFile().add<std::int64_t>("0_0", "I64", {1}, {1}).bytes(), "rank0");
    sum.add_rank(file.bytes(), "rank1");
  };
  EXPECT_THAT(config_error([&] { add({"1_0"}); }), HasSubstr("rank1: has no tensor 0_0"));
  EXPECT_THAT(config_error([&] { add({"0_0", "1_0"}); }), HasSubstr("rank1: has a tensor 1_0"));
  EXPECT_EQ(config_error([&] { add({"0_0"}); }), "");
}

TEST(TrtllmFolder, IsADistribution) {
  SweepPoint point = sample_point("recorded_counts", 3, 1, 600);
  point.routing.file = write_folder("trtllm_good", {{"meta_info.json", kMeta},
                                                    {"rank0.safetensors", rank_counts(1).bytes()},
                                                    {"rank1.safetensors", rank_counts(5).bytes()},
                                                    {"rank0_raw.safetensors", "not looked at"}});
  const std::vector<std::int64_t> rows = rows_per_expert(draw_trace(point, 1));
  EXPECT_EQ(rows[0], 0);
  EXPECT_NEAR(static_cast<double>(rows[1]), 600 * 8 / 36.0, 40);
  EXPECT_THAT(note_texts(routing_notes(point), Kind::note), HasSubstr("EP size 2"));
  point.model.top_k = 2;
  EXPECT_THAT(note_texts(routing_notes(point), Kind::warning),
              HasSubstr("recorded with 1 experts per token, the model has 2"));
  point.routing.params.push_back({"skip_iterations", 1});
  point.model.top_k = 1;
  EXPECT_THAT(rows_per_expert(draw_trace(point, 1)), ElementsAre(0, 0, 600));
}

TEST(TrtllmFolder, IncompleteFoldersAreRefused) {
  const std::string rank = rank_counts(1).bytes();
  const auto verdict = [](const std::string& folder) {
    return config_error([&] { read_trtllm_counts(folder, {}); });
  };
  EXPECT_THAT(verdict(write_folder("trtllm_no_meta", {{"rank0.safetensors", rank}})),
              HasSubstr("meta_info.json: cannot be read"));
  EXPECT_THAT(verdict(write_folder("trtllm_no_rank", {{"meta_info.json", kMeta}})),
              HasSubstr("without rank*.safetensors"));
  EXPECT_THAT(verdict(write_folder("trtllm_gap", {{"meta_info.json", kMeta},
                                                  {"rank0.safetensors", rank},
                                                  {"rank2.safetensors", rank}})),
              HasSubstr("expected rank1.safetensors next to rank2.safetensors"));
  EXPECT_THAT(verdict(write_folder("trtllm_meta", {{"meta_info.json", R"({"num_experts": 0})"}})),
              HasSubstr("num_experts 0 is not a count"));
}

TEST(TrtllmRoutes, RanksFollowInsideAnIteration) {
  const auto rank = [](std::int64_t first) {
    return SafetensorsFile()
        .add<std::int64_t>("4_7", "I64", {2, 2}, {first, 5, 1, 0})
        .add<std::int64_t>("4_9", "I64", {1, 2}, {3, 4})
        .add<std::int32_t>("5_7", "I32", {1, 2}, {static_cast<int>(first), 2})
        .add<std::int32_t>("5_9", "I32", {2, 2}, {-1, -1, 0, 1})
        .bytes();
  };
  const std::string meta = R"({"num_experts": 6, "num_experts_per_token": 2})";
  SweepPoint point = sample_point("recorded_trace", 6, 2, 6);
  point.routing.file = write_folder("trtllm_raw", {{"meta_info.json", meta},
                                                   {"rank0_raw.safetensors", rank(3)},
                                                   {"rank1_raw.safetensors", rank(4)}});
  EXPECT_THAT(draw_trace(point, 0).experts, ElementsAre(3, 5, 1, 0, 4, 5, 1, 0, 3, 2, 4, 2));
  point.concurrency.tokens = 4;
  EXPECT_THAT(draw_trace(point, 1).experts, ElementsAre(3, 4, 3, 4, 0, 1, 0, 1));
  EXPECT_THAT(note_texts(routing_notes(point), Kind::note),
              AllOf(HasSubstr("EP size 2, iterations 4 to 5"), HasSubstr("recorded layers 7, 9"),
                    HasSubstr("2 padding tokens"), HasSubstr("numbers of tokens, 4 to 6")));
  point.model.num_experts = 5;
  EXPECT_THAT(config_error([&] { draw_trace(point, 0); }),
              HasSubstr("recorded with 2 of 6 experts, the model has 2 of 5"));
}

TEST(TrtllmRoutes, RanksMustHaveTheSameTensors) {
  const auto file = [](const std::vector<std::string>& names) {
    SafetensorsFile made;
    for (const std::string& name : names) made.add<std::int64_t>(name, "I64", {1, 2}, {0, 1});
    return made.bytes();
  };
  const auto verdict = [&](const std::string& second) {
    return config_error([&] {
      TrtllmRoutes routes({.num_experts = 6, .top_k = 2});
      routes.add_rank(file({"0_3", "1_3"}), "rank0");
      routes.add_rank(second, "rank1");
    });
  };
  EXPECT_THAT(verdict(file({"0_3", "1_4"})),
              AllOf(HasSubstr("'1_4'"), HasSubstr("no such tensor")));
  EXPECT_THAT(verdict(file({"0_3"})),
              HasSubstr("rank1: 1 tensors, the files of the ranks before have 2"));
}

TEST(TrtllmRoutes, BadTensorsAreNamed) {
  const auto verdict = [](const SafetensorsFile& file) {
    return config_error([&] {
      TrtllmRoutes routes({.num_experts = 6, .top_k = 2});
      routes.add_rank(file.bytes(), "rank0");
      routes.finish("folder", {});
    });
  };
  using I = std::int64_t;
  EXPECT_THAT(verdict(SafetensorsFile().add<I>("0_0", "I64", {1, 3}, {1, 2, 3})),
              HasSubstr("tensor '0_0': shape [1,3], expected [tokens,2]"));
  EXPECT_THAT(verdict(SafetensorsFile().add<I>("0_0", "I64", {2, 2}, {1, 2, 6, 3})),
              AllOf(HasSubstr("token 1: expert 6 is outside 0..5"), HasSubstr("has 6 experts")));
  EXPECT_THAT(verdict(SafetensorsFile().add<I>("0_0", "I64", {1, 2}, {1, 1})),
              HasSubstr("expert 1 appears twice"));
  EXPECT_THAT(verdict(SafetensorsFile().add<I>("0_0", "I64", {1, 2}, {-1, 1})),
              HasSubstr("expert -1 beside others"));
  EXPECT_THAT(verdict(SafetensorsFile().add<double>("0_0", "F64", {1, 2}, {0, 1})),
              HasSubstr("expected whole numbers"));
  EXPECT_THAT(verdict(SafetensorsFile().add<I>("0_0", "I64", {1, 2}, {-1, -1})),
              HasSubstr("holds no token"));
}

TEST(SglangCounts, StepsAreAddedUp) {
  const std::string text = R"({"logical_count": [[[0,0],[1,2]],[[0,0],[3,4]],[[0,0],[50,60]]]})";
  EXPECT_THAT(read_sglang_counts(text, "x", {}).layers, ElementsAre(ElementsAre(54, 66)));
  const RecordedCounts cut = read_sglang_counts(text, "x", {.skip = 1, .max = 1});
  EXPECT_THAT(cut.layers, ElementsAre(ElementsAre(3, 4)));
  EXPECT_THAT(note_texts(cut.notes, Kind::note),
              AllOf(HasSubstr("sum over steps 1 to 1 of 3"), HasSubstr("as dense: 0")));
  const auto verdict = [](const char* bad, const Cut& steps) {
    return config_error([&] { read_sglang_counts(bad, "x", steps); });
  };
  EXPECT_THAT(verdict(R"({"logical_count": [[[1,2]],[[1,-2]]]})", {}),
              HasSubstr("step 1, row 0, column 1 (all from 0): -2 is negative"));
  EXPECT_THAT(verdict(R"({"logical_count": [[[1,2]],[[1,2,3]]]})", {}),
              HasSubstr("step 1, has 1 x 3 counts, step 0 has 1 x 2"));
  EXPECT_THAT(verdict(R"({"logical_count": [[[1,2]],[]]})", {}), HasSubstr("step 1, is not a"));
  EXPECT_THAT(verdict(R"({"logical_count": [[[1,2]]]})", {.skip = 1}),
              HasSubstr("need 2 iterations, 1 are recorded"));
  EXPECT_THAT(verdict(R"({"logical_count": [[1,2]]})", {.skip = 1}),
              HasSubstr("holds one sum over all steps"));
}

// 0.05 % is what published recordings show; 2 % is another set of tokens.
TEST(RecordedCountsNotes, TotalsThatDifferAreReported) {
  const auto notes = [](std::vector<double> totals, Kind kind) {
    std::vector<CountsRow> rows;
    for (const double total : totals) {
      rows.push_back({static_cast<std::int64_t>(rows.size()), {total - 1, 1}});
    }
    return note_texts(counts_of_rows(std::move(rows)).notes, kind);
  };
  EXPECT_THAT(notes({10'000, 10'000}, Kind::note), IsEmpty());
  EXPECT_THAT(notes({10'000, 9'995, 10'000}, Kind::note), HasSubstr("differ by 0.05 %"));
  EXPECT_THAT(notes({10'000, 9'995, 10'000}, Kind::warning), IsEmpty());
  EXPECT_THAT(notes({10'000, 9'800, 10'000}, Kind::note), IsEmpty());
  EXPECT_THAT(notes({10'000, 9'800, 10'000}, Kind::warning),
              AllOf(HasSubstr("differ by 2 %"), HasSubstr("recorded layers 1 are")));
}

std::string route(std::int64_t layer, const std::string& ids) {
  return fmt::format(R"({{"type":"route","req_id":"r","token_idx":0,"layer":{},"topk_ids":[{}],)"
                     R"("topk_weights":[0.2,0.1]}})"
                     "\n",
                     layer, ids);
}

constexpr TraceModel kModel = {.num_experts = 64, .top_k = 2};

// The public Qwen log in small: dummies in two runs, a token between them, then real tokens.
TEST(TraceLines, DummiesAreReportedWithTheCutThatLeavesThemOut) {
  std::string text = "{\"type\":\"meta\",\"model\":\"m\",\"top_k\":2}\n";
  for (int i = 0; i < 1500; ++i) text += route(0, "43,5");
  text += route(0, "1,2");
  for (int i = 0; i < 1000; ++i) text += route(0, "43,5");
  for (int i = 0; i < 60; ++i) text += route(0, fmt::format("{},{}", i % 30, i % 30 + 1));
  const RecordedTrace all = read_trace_lines(text, "x", kModel, {});
  EXPECT_THAT(
      note_texts(all.notes, Kind::warning),
      AllOf(HasSubstr("layer 0: 2500 of 2561 tokens"), HasSubstr("tokens 0..1499, 1501..2500"),
            HasSubstr("experts 43,5"), HasSubstr("skip_tokens: 2501 and max_tokens: 60")));
  const RecordedTrace cut = read_trace_lines(text, "x", kModel, {.skip = 2501, .max = 60});
  EXPECT_THAT(cut.notes, IsEmpty());
  EXPECT_EQ(cut.layers.at(0).size(), 120U);
  EXPECT_EQ(cut.layers.at(0)[2], 1);
  EXPECT_THAT(config_error([&] { read_trace_lines(text, "x", kModel, {.skip = 2502, .max = 60}); }),
              HasSubstr("x: layer 0: skip_tokens 2502 and max_tokens 60 need 2562 tokens, 2561"));
}

TEST(TraceLines, RunsBelowAThousandAreNotSuspicious) {
  std::string text;
  for (int i = 0; i < 999; ++i) text += route(0, "43,5");
  EXPECT_THAT(read_trace_lines(text, "x", kModel, {}).notes, IsEmpty());
  text += route(0, "43,5");
  EXPECT_THAT(note_texts(read_trace_lines(text, "x", kModel, {}).notes, Kind::warning),
              HasSubstr("tokens 0..999"));
}

TEST(TraceLines, PaddingIsLeftOutAndCounted) {
  const std::string text =
      "{\"token\": 0, \"experts\": [1, 2]}\n{\"token\": 1, \"experts\": [-1, -1]}\n"
      "{\"token\": 2, \"experts\": [3, 4]}\n";
  const RecordedTrace trace = read_trace_lines(text, "x", kModel, {});
  EXPECT_THAT(trace.layers.at(0), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(note_texts(trace.notes, Kind::note), HasSubstr("1 padding tokens"));
  EXPECT_THAT(config_error([] { read_trace_lines("{\"experts\":[1,-1]}", "x", kModel, {}); }),
              HasSubstr("x:1: expert -1 beside others in [1,-1]"));
}

TEST(TraceLines, WeightsMustBelongToTheIds) {
  const auto verdict = [](const char* weights) {
    const std::string line = fmt::format(R"({{"topk_ids":[1,2],"topk_weights":{}}})", weights);
    return config_error([&] { read_trace_lines(line, "x", kModel, {}); });
  };
  EXPECT_EQ(verdict("[0.5, 0]"), "");
  for (const char* bad : {"[0.5]", "[0.5,0.1,0.2]", "[0.5,\"a\"]", "7"}) {
    EXPECT_THAT(verdict(bad), HasSubstr("one number for each of 2 experts")) << bad;
  }
}

TEST(TraceLines, DeepNestingIsRefused) {
  const std::string deep = "{\"experts\": " + std::string(200'000, '[') + "\n";
  EXPECT_THAT(config_error([&] { read_trace_lines(deep, "x", kModel, {}); }),
              HasSubstr("x:1: nested more than 100 deep"));
}

}  // namespace
}  // namespace epsweep
