// Of our own kernel and oneDNN the one that is faster for an expert's number of rows.
#include <array>
#include <bit>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "base/host_probe.h"
#include "base/statistics.h"
#include "cpu/cpu_backend.h"
#include "cpu/grouped_gemms/packed_grouped_gemm.h"
#include "cpu/grouped_gemms/panel_gemm.h"
#include "device/gemm_choice.h"

namespace epsweep {
namespace {

using Rows = std::span<const std::int64_t>;

constexpr std::array kNames = {"amx", "onednn"};
constexpr int kRepetitions = 3;
constexpr int kLastBucket = 9;
// Of weights that a repetition reads: more than a core's caches hold.
constexpr std::int64_t kMeasuredBytes = std::int64_t{64} << 20;

// Row counts from 2^b to below 2^(b + 1), and all from 2^9 on.
int bucket_of(std::int64_t rows) {
  return std::min(kLastBucket,
                  static_cast<int>(std::bit_width(static_cast<std::uint64_t>(rows))) - 1);
}
std::int64_t rows_of(int bucket) {
  return bucket == 0 ? 1 : (std::int64_t{3} << bucket) / 2;
}

using Times = std::array<double, kNames.size()>;  // us of one expert with that many rows

// Measured once per process for each shape; layers of one model share them.
struct TableKey {
  std::int64_t n = 0, k = 0;
  DType dtype = DType::bf16;
  int num_threads = 0, bucket = 0;
  bool operator<(const TableKey& other) const {
    return std::tie(n, k, dtype, num_threads, bucket) <
           std::tie(other.n, other.k, other.dtype, other.num_threads, other.bucket);
  }
};

class AutoCpu final : public GroupedGemm {
 public:
  AutoCpu(const GemmShape& shape, int num_threads)
      : shape_(shape),
        num_threads_(num_threads),
        own_(make_panel_gemm(shape, num_threads, tile_code())) {
    if (const auto reason = PackedGemm::refuses(shape)) {
      onednn_left_out_ = *reason;
      return;
    }
    onednn_ = std::make_unique<PackedGroupedGemm>(shape, num_threads, ExpertOrder::together);
    if (onednn_->packed().takes_panels()) return;
    onednn_left_out_ = "has a weight layout of its own";
    onednn_.reset();
  }

  void prepare(const WeightSource& source) override {
    auto weights = std::make_shared<WeightPanels>(shape_);
    ThreadPool pool(num_threads_);
    weights->load(source, pool);
    weights_ = std::move(weights);
    own_->share(weights_);
    if (onednn_) onednn_->packed().share(weights_);
  }

  void warm(Rows rows) override {
    if (total_rows(rows) == 0 || taken_.contains(rows)) return;
    Taken taken = choose(rows);
    std::vector<std::int64_t> of_onednn(rows.begin(), rows.end());
    for (std::size_t i = 0; i < rows.size(); ++i) of_onednn[i] *= taken.by[1][i];
    own_->warm(rows);
    if (onednn_) onednn_->warm(of_onednn);
    taken_.emplace(std::vector<std::int64_t>(rows.begin(), rows.end()), std::move(taken));
  }

  GemmWork run(Lane&, const Buffer& x, Buffer& y, Rows rows) override {
    if (total_rows(rows) == 0) return {};
    if (!taken_.contains(rows)) warm(rows);
    const Taken& taken = taken_.find(rows)->second;
    GemmWork work = own_->run_some(x, y, rows, taken.by[0]);
    if (onednn_) {
      const GemmWork more = onednn_->run_some(x, y, rows, taken.by[1]);
      work.kernel_calls += more.kernel_calls;
      work.computed_rows += more.computed_rows;
      work.stored_rows += more.stored_rows;
      work.workspace_bytes += more.workspace_bytes;
    }
    work.choice = taken.choice;
    return work;
  }

  void flush_weights() override { weights_->flush(); }
  std::int64_t weight_bytes() const override { return weights_->bytes(); }

 private:
  struct Taken {
    std::array<std::vector<char>, kNames.size()> by;  // per expert
    std::shared_ptr<const GemmChoice> choice;
  };

  // The record's times are what the table says all experts would take together.
  Taken choose(Rows rows) {
    Taken taken;
    for (std::vector<char>& by : taken.by) by.assign(rows.size(), 0);
    Times sums{};
    std::array<bool, kNames.size()> used{};
    for (std::size_t expert = 0; expert < rows.size(); ++expert) {
      if (rows[expert] == 0) continue;
      const Times& times = times_of(bucket_of(rows[expert]));
      const std::size_t best = best_of(times);
      taken.by[best][expert] = 1;
      used[best] = true;
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += times[i];
    }
    auto choice = std::make_shared<GemmChoice>();
    for (std::size_t i = 0; i < kNames.size(); ++i) {
      GemmChoice::Candidate candidate{.name = kNames[i]};
      if (i == 0 || onednn_) candidate.us = sums[i];
      if (i == 1) candidate.left_out = onednn_left_out_;
      choice->candidates.push_back(std::move(candidate));
      if (!used[i]) continue;
      choice->chosen += (choice->chosen.empty() ? "" : "+") + std::string(kNames[i]);
    }
    taken.choice = std::move(choice);
    return taken;
  }

  std::size_t best_of(const Times& times) const {
    std::vector<GemmChoice::Candidate> candidates = {{.name = kNames[0], .us = times[0]}};
    // A call per expert at least, against one for all.
    if (onednn_) candidates.push_back({.name = kNames[1], .us = times[1], .kernel_calls = 1});
    return best_candidate(candidates).value();
  }

  const Times& times_of(int bucket) {
    static std::mutex mutex;
    static std::map<TableKey, Times> table;
    const std::lock_guard lock(mutex);
    const TableKey key{shape_.n, shape_.k, shape_.dtype, num_threads_, bucket};
    const auto found = table.find(key);
    if (found != table.end()) return found->second;
    return table.emplace(key, measure(rows_of(bucket))).first->second;
  }

  // Medians of interleaved repetitions, the weights of as many experts as need be cold.
  Times measure(std::int64_t rows) {
    const auto experts = static_cast<int>(std::clamp<std::int64_t>(
        (kMeasuredBytes + weights_->expert_bytes() - 1) / weights_->expert_bytes(), 1,
        shape_.num_experts));
    std::vector<std::int64_t> counts(static_cast<std::size_t>(shape_.num_experts), 0);
    std::fill_n(counts.begin(), experts, rows);
    const std::int64_t element = bytes_of(shape_.dtype), total = experts * rows;
    Buffer x = make_cpu_buffer(total * shape_.k * element);
    Buffer y = make_cpu_buffer(total * shape_.n * element);
    fill_payload({RandomStream(0, Stream::token), 0x1p-7F}, 0, total * shape_.k, shape_.dtype,
                 x.data());
    const std::vector<char> all(counts.size(), 1);
    std::array<std::vector<double>, kNames.size()> us;
    for (int repetition = 0; repetition <= kRepetitions; ++repetition) {
      for (std::size_t i = 0; i < (onednn_ ? kNames.size() : 1); ++i) {
        weights_->flush(experts);
        const double begin = monotonic_s();
        i == 0 ? own_->run_some(x, y, counts, all) : onednn_->run_some(x, y, counts, all);
        // The first one compiles and allocates.
        if (repetition > 0) us[i].push_back((monotonic_s() - begin) * 1e6 / experts);
      }
    }
    Times medians{};
    for (std::size_t i = 0; i < us.size(); ++i) {
      if (!us[i].empty()) medians[i] = nearest_rank(us[i], 0.5);
    }
    return medians;
  }

  GemmShape shape_;
  int num_threads_;
  std::shared_ptr<const WeightPanels> weights_;
  std::unique_ptr<PanelGemm> own_;
  std::unique_ptr<PackedGroupedGemm> onednn_;  // null if it cannot take part
  std::string onednn_left_out_;
  std::map<std::vector<std::int64_t>, Taken, RowsLess> taken_;
};

std::optional<std::string> refuses(const GemmShape& shape) {
  return GroupedGemmCatalog::instance().at(kNames[0]).refuses(shape);
}

std::unique_ptr<GroupedGemm> make(const GemmShape& shape, int num_threads) {
  return std::make_unique<AutoCpu>(shape, num_threads);
}

const bool registered = GroupedGemmCatalog::instance().add(
    {.name = "auto_cpu",
     .backend = "cpu",
     .summary = "for every expert amx or onednn, as measured before timing for its rows",
     .refuses = refuses,
     .make = make});

}  // namespace
}  // namespace epsweep
