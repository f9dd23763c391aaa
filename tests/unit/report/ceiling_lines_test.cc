#include "report/ceiling_lines.h"

#include <gmock/gmock.h>

namespace epsweep {
namespace {

using testing::HasSubstr;
using testing::Not;

Json sample_ceilings() {
  return parse_json(R"({"took_s": {"streams": 1, "gemm": 0.5, "exchange": 0.25},
    "rates": [{"working_ranks": [0, 1],
      "gemm": {"bf16": {"slowest_flop_per_s": 4e11, "fastest_flop_per_s": 5e11,
                        "kernel_of_rank": ["onednn", "loop"], "size_of_rank": [1024, 1024]}},
      "slowest_read_bytes_per_s": 1.2e10, "fastest_read_bytes_per_s": 1.2e10,
      "slowest_copy_bytes_per_s": null, "fastest_copy_bytes_per_s": null,
      "streamed_bytes_of_rank": [6e8, 5e8], "cached_of_rank": [false, false],
      "launch_latency_s_of_rank": [2e-6, 3e-6]}],
    "exchange": [{"ep_size": 2, "mapping": "packed", "groups": "fill", "transport": "pairwise",
      "alpha_s": 4e-6, "beta_bytes_per_s": 3e9, "count_exchange_s": 5e-6, "ladder": []}]})",
                    "ceilings");
}

TEST(CeilingLines, ShowSlowestAndFastestRank) {
  const std::string text = ceiling_text({{"ceilings", sample_ceilings()}});
  EXPECT_THAT(text, HasSubstr("in 1.75 s\n"));
  EXPECT_THAT(text, HasSubstr("  2 ranks\n"));
  EXPECT_THAT(text, HasSubstr("GEMM bf16: 400.0-500.0 GFLOP/s (loop, onednn, 1024 rows)"));
  EXPECT_THAT(text, HasSubstr("read 12.0 GB/s, copy - GB/s both ways (500.0 MB)"));
  EXPECT_THAT(text, HasSubstr("start of work: 2.00 us"));
  EXPECT_THAT(text, HasSubstr("EP2 packed fill pairwise: alpha 4.00 us, beta 3.00 GB/s of a rank, "
                              "counts 5.00 us"));
  EXPECT_THAT(text, Not(HasSubstr("cache")));
}

TEST(CeilingLines, SayWhereACacheMayHaveBeenMeasured) {
  Json ceilings = sample_ceilings();
  ceilings["rates"][0]["cached_of_rank"][1] = true;
  EXPECT_THAT(ceiling_text({{"ceilings", ceilings}}), HasSubstr("may be the cache's"));
}

// Of older runs, of runs that skipped them, and of files somebody edited.
TEST(CeilingLines, AreLeftOutWhereThereAreNone) {
  EXPECT_EQ(ceiling_text(Json::object()), "");
  EXPECT_EQ(ceiling_text({{"ceilings", nullptr}}), "");
  EXPECT_EQ(ceiling_text({{"ceilings", 3}}), "");
  EXPECT_THAT(ceiling_text({{"ceilings", {{"rates", {1, Json::object()}}, {"exchange", "x"}}}}),
              HasSubstr("GB/s"));
}

}  // namespace
}  // namespace epsweep
