// Every experiment and model that is shipped can be planned.
#include <algorithm>
#include <filesystem>
#include <set>

#include <gtest/gtest.h>

#include "app/experiment.h"
#include "app/plan_table.h"
#include "base/text.h"
#include "plan/yaml_tree.h"
#include "workload/gate.h"

namespace epsweep {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> files_in(const char* folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(fs::path(EPSWEEP_SOURCE_DIR) / folder)) {
    files.push_back(entry.path().string());
  }
  std::ranges::sort(files);
  return files;
}

void expect_router(const ModelShape& model) {
  const RandomStream random(1, Stream::test);
  std::vector<double> logits;
  for (int e = 0; e < model.num_experts; ++e) {
    logits.push_back(4 * random.uniform(static_cast<std::uint64_t>(e)) - 2);
  }
  const std::vector<float> bias = layer_selection_bias(1, 0, model);
  const RouterChoice choice = ModelRouter(model, {bias.begin(), bias.end()}).route(logits);
  EXPECT_EQ(std::set(choice.experts.begin(), choice.experts.end()).size(),
            static_cast<std::size_t>(model.top_k));
  for (const double weight : choice.weights) EXPECT_GT(weight, 0);
}

// The placement experiment shows how far the hierarchical policy goes: no further than that.
bool has_more_hosts_than_groups(const SweepPoint& point) {
  return point.placement == "eplb_hierarchical" &&
         declared_places(point).value().num_hosts > point.model.router.num_groups;
}

TEST(ShippedFiles, EveryExperimentPlansWithoutAnInfeasiblePoint) {
  const std::vector<std::string> files = files_in("configs/experiments");
  EXPECT_GE(files.size(), 3U);
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    const SweepSpec spec = load_experiment(file, {}, "cpu");
    const Plan plan = make_plan(spec);
    EXPECT_NO_THROW(check_routings(plan));
    for (const SweepPoint& point : plan.points) {
      if (has_more_hosts_than_groups(point)) continue;
      EXPECT_EQ(reason_not_to_plan(point).value_or(""), "") << point_label(point);
    }
    EXPECT_FALSE(plan_table(spec, plan, {}).empty());
  }
}

TEST(ShippedFiles, EveryModelLoadsUnderItsOwnName) {
  const std::vector<std::string> files = files_in("configs/models");
  EXPECT_GE(files.size(), 15U);
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    const ModelShape model = read_model_shape(parse_yaml(read_text_file(file), file), std::nullopt);
    EXPECT_EQ(model.name, fs::path(file).stem().string());
    EXPECT_FALSE(model.source.empty());
    expect_router(model);
  }
}

TEST(ShippedFiles, CatalogsAreNotEmpty) {
  // An entry that its object library lost at link time would be missing here.
  const Catalogs catalogs = linked_catalogs("cpu");
  EXPECT_GE(catalogs.distributions.size(), 8U);
  EXPECT_GE(catalogs.placements.size(), 4U);
  EXPECT_GE(catalogs.transports.size(), 2U);
  EXPECT_GE(catalogs.grouped_gemms.size(), 3U);
}

}  // namespace
}  // namespace epsweep
