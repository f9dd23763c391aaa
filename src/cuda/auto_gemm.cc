#include "cuda/auto_gemm.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/statistics.h"
#include "cuda/cache_flush.h"
#include "cuda/cuda_lane.h"
#include "cuda/cuda_memory.h"
#include "cuda/element_type_of.h"
#include "cuda/kernels/payload.h"
#include "cuda/shared_weights_gemm.h"
#include "device/gemm_choice.h"

namespace epsweep::cuda {
namespace {

constexpr int kRepetitions = 5;

using Rows = std::span<const std::int64_t>;

// Rows to multiply: random values, as the speed of a GPU depends on its data.
Buffer make_rows(std::int64_t values, DType dtype, cudaStream_t stream) {
  constexpr float kUnit = 0x1p-7F;  // as that of tokens
  Buffer rows = make_device_buffer(values * bytes_of(dtype));
  fill_payload(stream, RandomStream(0, Stream::token), 0, kUnit, values, element_type_of(dtype),
               rows.data());
  return rows;
}

class AutoGemm final : public GroupedGemm {
 public:
  AutoGemm(const GemmShape& shape, int num_threads, std::vector<GroupedGemmEntry> candidates)
      : shape_(shape), num_threads_(num_threads), candidates_(std::move(candidates)) {}

  void prepare(const WeightSource& source) override {
    auto own = std::make_shared<ExpertMatrices>(shape_);
    own->load(source);
    weights_ = std::move(own);
  }

  void warm(Rows rows_per_expert) override {
    if (total_rows(rows_per_expert) == 0 || taken_.contains(rows_per_expert)) return;
    auto choice = std::make_shared<GemmChoice>();
    choice->candidates = measure_all(rows_per_expert);
    const auto best = best_candidate(choice->candidates);
    if (!best) throw RunError("auto: " + reasons(choice->candidates));
    choice->chosen = choice->candidates[*best].name;
    GroupedGemm& gemm = kept(candidates_[*best]);
    gemm.warm(rows_per_expert);
    taken_.emplace(std::vector<std::int64_t>(rows_per_expert.begin(), rows_per_expert.end()),
                   Taken{&gemm, std::move(choice)});
  }

  GemmWork run(Lane& lane, const Buffer& x, Buffer& y, Rows rows_per_expert) override {
    if (total_rows(rows_per_expert) == 0) return {};
    const auto taken = taken_.find(rows_per_expert);
    EPS_EXPECT(taken != taken_.end(), "auto runs rows that were not measured");
    GemmWork work = taken->second.gemm->run(lane, x, y, rows_per_expert);
    work.choice = taken->second.choice;
    return work;
  }

  void flush_weights() override { flush_device_cache(); }
  std::int64_t weight_bytes() const override { return ExpertMatrices(shape_).bytes(); }

 private:
  struct Taken {
    GroupedGemm* gemm;
    std::shared_ptr<const GemmChoice> choice;
  };
  struct Operands {
    Buffer x, y;
  };

  static std::string reasons(const std::vector<GemmChoice::Candidate>& candidates) {
    std::string text = "no kernel is left";
    for (const GemmChoice::Candidate& candidate : candidates) {
      text += fmt::format("; {}: {}", candidate.name, candidate.left_out);
    }
    return text;
  }

  // Null for a kernel that wants weights of its own.
  std::unique_ptr<GroupedGemm> make(const GroupedGemmEntry& entry) const {
    std::unique_ptr<GroupedGemm> made = entry.make(shape_, num_threads_);
    auto* sharing = dynamic_cast<SharedWeightsGemm*>(made.get());
    if (sharing == nullptr) return nullptr;
    sharing->share(weights_);
    return made;
  }

  GroupedGemm& kept(const GroupedGemmEntry& entry) {
    std::unique_ptr<GroupedGemm>& gemm = kept_[entry.name];
    if (gemm == nullptr) gemm = make(entry);
    return *gemm;
  }

  std::vector<GemmChoice::Candidate> measure_all(Rows rows) {
    const DType dtype = row_dtype(shape_.dtype);
    const std::int64_t total = total_rows(rows);
    Operands operands{make_rows(total * shape_.k, dtype, stream_of(lane_)),
                      make_device_buffer(total * shape_.n * bytes_of(dtype))};
    std::vector<GemmChoice::Candidate> measured;
    for (const GroupedGemmEntry& entry : candidates_) {
      measured.push_back(measure(entry, operands, rows));
    }
    return measured;
  }

  // The candidate and its memory are gone when this returns.
  GemmChoice::Candidate measure(const GroupedGemmEntry& entry, Operands& operands, Rows rows) {
    GemmChoice::Candidate result{.name = entry.name, .us = {}, .kernel_calls = 0, .left_out = ""};
    if (const auto reason = entry.refuses(shape_)) {
      result.left_out = *reason;
      return result;
    }
    try {
      const std::unique_ptr<GroupedGemm> gemm = make(entry);
      if (gemm == nullptr) {
        result.left_out = "has a weight layout of its own";
        return result;
      }
      gemm->warm(rows);
      time(*gemm, operands, rows, result);
    } catch (const RunError& error) {
      result.left_out = error.what();
      cudaGetLastError();  // must not fail the next candidate
    }
    return result;
  }

  // The flush before a repetition is on the same stream and gives the host a head start over the
  // device, as the exchange before the expert FFN does.
  void time(GroupedGemm& gemm, Operands& operands, Rows rows, GemmChoice::Candidate& result) {
    const cudaStream_t stream = stream_of(lane_);
    gemm.run(lane_, operands.x, operands.y, rows);
    std::vector<double> us;
    for (int i = 0; i < kRepetitions; ++i) {
      enqueue_cache_flush(stream);
      EPS_CUDA(cudaEventRecord(begin_.get(), stream));
      result.kernel_calls = gemm.run(lane_, operands.x, operands.y, rows).kernel_calls;
      EPS_CUDA(cudaEventRecord(end_.get(), stream));
      lane_.synchronize();
      float ms = 0;
      EPS_CUDA(cudaEventElapsedTime(&ms, begin_.get(), end_.get()));
      us.push_back(static_cast<double>(ms) * 1e3);
    }
    result.us = nearest_rank(us, 0.5);
  }

  GemmShape shape_;
  int num_threads_;
  std::vector<GroupedGemmEntry> candidates_;
  std::shared_ptr<const ExpertMatrices> weights_;
  CudaLane lane_;
  EventHandle begin_ = make_timed_event(), end_ = make_timed_event();
  std::map<std::string, std::unique_ptr<GroupedGemm>> kept_;
  std::map<std::vector<std::int64_t>, Taken, RowsLess> taken_;
};

}  // namespace

std::unique_ptr<GroupedGemm> make_auto_gemm(const GemmShape& shape, int num_threads,
                                            std::vector<GroupedGemmEntry> candidates) {
  return std::make_unique<AutoGemm>(shape, num_threads, std::move(candidates));
}

}  // namespace epsweep::cuda
