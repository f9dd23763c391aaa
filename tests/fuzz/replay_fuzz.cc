// Measurements of other tools: replay files, what is computed from them, and nccl-tests' JSON.
#include "fuzz/fuzz_target.h"
#include "report/nccl_tests_import.h"
#include "report/replay_record.h"
#include "report/replay_series.h"
#include "report/replay_text.h"

namespace epsweep {

std::vector<std::string> fuzz_seeds() {
  const std::string page =
      read_text_file(std::string(EPSWEEP_SOURCE_DIR) + "/src/report/replay_format.md");
  const std::size_t begin = page.find("```json\n") + 8;
  return {
      page.substr(begin, page.find("\n```", begin) - begin),
      R"({"format":"epsweep_replay","schema_version":"1.0","tool":"t","points":[{"name":"p",)"
      R"("ep_size":1,"regime":"unknown","warmup":null,"ranks":[{"rank":0,"group":7,"stages":)"
      R"({"exchange":{"duration_s":[1,2,3,1e-9]},"layer":{"duration_s":[1,2,3,4]}}}]}]})",
      R"({"version":3,"args":["alltoall_perf"],"config":{"nthreads":1,"ngpus":1,"warmup_iters":1,)"
      R"("aggregated_iterations":1,"blocking_collectives":"true","devices":[{"hostname":"a",)"
      R"("group":0},{"hostname":"b","group":1}]},"results":[{"size":64,"out_of_place":{"nwrong":0.0},)"
      R"("out_of_place_per_iter":{"times_us":[1,2],"per_process_max_times_us":[[1,2],[3,4]]}}]})"};
}

}  // namespace epsweep

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace epsweep;
  const std::string text(as_text(data, size));
  refuse_politely([&] {
    const ReplayFile file = parse_replay(text, "fuzz");
    std::vector<Json> records;
    for (const ReplayPoint& point : file.points) records.push_back(make_replay_record(file, point));
    replay_text(file, records);
    replay_verdicts(records);
    expect_comparable({file});
  });
  // What is imported must be readable.
  refuse_politely([&] {
    const Json replay = import_nccl_tests(text, "fuzz").replay;
    try {
      parse_replay(to_json_line(replay), "imported");
    } catch (const ConfigError& error) {
      throw RunError(error.what());
    }
  });
  return 0;
}
