#include "ffn_study.h"

#include <algorithm>
#include <memory>

#include <cuda_runtime_api.h>

#include "base/error.h"
#include "cuda/cuda_lane.h"
#include "cuda/expert_matrices.h"
#include "cuda/fp8_support.h"
#include "cuda/matmul.h"
#include "cuda/quantised_inputs.h"

namespace epsweep {
namespace {

constexpr int kCeilingRepetitions = 10;

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Seconds between two marks of the lane, median of repetitions after one more to warm up.
template <typename Prepare, typename Work>
double time_work(Backend& backend, Lane& lane, int repetitions, const Prepare& prepare,
                 const Work& work) {
  const auto timeline = backend.make_timeline(2);
  std::vector<double> seconds;
  timeline->start(lane);
  for (int i = 0; i <= repetitions; ++i) {
    prepare();
    timeline->mark(lane, 0);
    work();
    timeline->mark(lane, 1);
    lane.synchronize();
    if (i > 0) seconds.push_back(timeline->at(1) - timeline->at(0));
  }
  return median(seconds);
}

Buffer random_rows(Backend& backend, std::int64_t count, DType dtype, int number) {
  Buffer buffer = backend.make_buffer(count * bytes_of(dtype));
  backend.fill(buffer, {RandomStream(3, Stream::test, static_cast<std::uint64_t>(number)), 0x1p-8F},
               0, count, dtype);
  return buffer;
}

PayloadStream weights_of(int matrix, int expert) {
  return {RandomStream(5, Stream::test, static_cast<std::uint64_t>(matrix),
                       static_cast<std::uint64_t>(expert)),
          0x1p-12F};
}

std::unique_ptr<GroupedGemm> make_kernel(const std::string& name, const GemmShape& shape,
                                         int matrix) {
  auto gemm = GroupedGemmCatalog::instance().at(name).make(shape, 1);
  gemm->prepare([matrix](int expert) { return weights_of(matrix, expert); });
  return gemm;
}

double copy_rate(Backend& backend, Lane& lane) {
  constexpr std::int64_t kBytes = std::int64_t{2} << 30;
  const Buffer from = random_rows(backend, kBytes / 2, DType::bf16, 1);
  Buffer to = backend.make_buffer(kBytes);
  const double seconds = time_work(
      backend, lane, kCeilingRepetitions, [] {},
      [&] {
        EPS_CUDA(cudaMemcpyAsync(to.data(), from.data(), static_cast<std::size_t>(kBytes),
                                 cudaMemcpyDeviceToDevice, cuda::stream_of(lane)));
      });
  return 2.0 * static_cast<double>(kBytes) / seconds;
}

// The product alone: quantising is what kernels are measured with, and no part of the ceiling.
double gemm_rate(Backend& backend, Lane& lane, DType dtype) {
  constexpr std::int64_t kSize = 8192;
  const GemmShape shape{.num_experts = 1, .n = kSize, .k = kSize, .dtype = dtype};
  if (const auto reason = cuda::refuse_cublaslt(shape)) throw RunError(*reason);
  cuda::ExpertMatrices weights(shape);
  weights.load([](int expert) { return weights_of(0, expert); });
  cuda::Matmul matmul({.n = kSize, .k = kSize, .dtype = dtype});
  matmul.prepare(kSize);
  const Buffer x = random_rows(backend, kSize * kSize, row_dtype(dtype), 2);
  Buffer y = backend.make_buffer(kSize * kSize * bytes_of(row_dtype(dtype)));
  Buffer workspace = backend.make_buffer(cuda::kMatmulWorkspaceBytes);
  cuda::Matmul::Operands operands{.x = x.data(), .w = weights.of(0), .y = y.data()};
  cuda::QuantisedInputs inputs(shape);
  if (is_fp8(dtype)) {
    cuda::SlotPlan slots(1);
    const std::int64_t rows[] = {kSize};
    slots.lay_out(rows, [](std::int64_t own) { return own; });
    inputs.reserve(kSize);
    inputs.quantise(cuda::stream_of(lane), slots, x.data());
    operands.x = inputs.rows_at(0);
    operands.x_scales = inputs.scales_at(0);
    operands.w_scales = weights.scales_of(0);
  }
  const double seconds = time_work(
      backend, lane, kCeilingRepetitions, [] {},
      [&] { matmul.run(cuda::stream_of(lane), kSize, operands, workspace); });
  return 2.0 * kSize * kSize * kSize / seconds;
}

// One kernel's two products and what lies between them.
class Ffn {
 public:
  Ffn(Backend& backend, const FfnShape& shape, const std::string& kernel, std::int64_t most_rows)
      : backend_(backend),
        shape_(shape),
        lane_(backend.make_lane()),
        gate_up_(make_kernel(kernel, gate_up_shape(shape), 1)),
        down_(make_kernel(kernel, down_shape(shape), 2)) {
    const DType dtype = row_dtype(shape.dtype);
    const std::int64_t rows = most_rows * shape.experts, element = bytes_of(dtype);
    x_ = random_rows(backend, rows * shape.hidden, dtype, 3);
    wide_ = backend.make_buffer(rows * 2 * shape.ffn * element);
    narrow_ = backend.make_buffer(rows * shape.ffn * element);
    y_ = backend.make_buffer(rows * shape.hidden * element);
  }

  static GemmShape gate_up_shape(const FfnShape& shape) {
    return {
        .num_experts = shape.experts, .n = 2 * shape.ffn, .k = shape.hidden, .dtype = shape.dtype};
  }
  static GemmShape down_shape(const FfnShape& shape) {
    return {.num_experts = shape.experts, .n = shape.hidden, .k = shape.ffn, .dtype = shape.dtype};
  }

  void time(FfnTime& result, int repetitions) {
    const std::vector<std::int64_t> rows = warm(result.rows_per_expert);
    result.median_s = time_work(
        backend_, *lane_, repetitions, [&] { gate_up_->flush_weights(); },
        [&] { run(rows, result); });
  }

  void profile(FfnTime& result) {
    const std::vector<std::int64_t> rows = warm(result.rows_per_expert);
    run(rows, result);
    lane_->synchronize();
    gate_up_->flush_weights();
    lane_->begin_range(result.kernel.c_str());
    run(rows, result);
    lane_->synchronize();
    lane_->end_range();
  }

 private:
  std::vector<std::int64_t> warm(std::int64_t rows_per_expert) {
    const std::vector<std::int64_t> rows(static_cast<std::size_t>(shape_.experts), rows_per_expert);
    gate_up_->warm(rows);
    down_->warm(rows);
    return rows;
  }

  void run(const std::vector<std::int64_t>& rows, FfnTime& result) {
    const GemmWork first = gate_up_->run(*lane_, x_, wide_, rows);
    backend_.token_ops().activation(*lane_, Activation::swiglu, row_dtype(shape_.dtype),
                                    result.rows_per_expert * shape_.experts, shape_.ffn, wide_,
                                    narrow_);
    const GemmWork second = down_->run(*lane_, narrow_, y_, rows);
    result.kernel_calls = first.kernel_calls + second.kernel_calls + 1;
    result.computed_rows = std::max(first.computed_rows, second.computed_rows);
  }

  Backend& backend_;
  FfnShape shape_;
  std::unique_ptr<Lane> lane_;
  std::unique_ptr<GroupedGemm> gate_up_, down_;
  Buffer x_, wide_, narrow_, y_;
};

}  // namespace

Ceilings measure_ceilings(Backend& backend, DType dtype) {
  const auto lane = backend.make_lane();
  return {.copy_bytes_per_s = copy_rate(backend, *lane),
          .gemm_flops = gemm_rate(backend, *lane, dtype)};
}

double FfnNeed::roof_s(const Ceilings& ceilings) const {
  return std::max(bytes / ceilings.copy_bytes_per_s, flops / ceilings.gemm_flops);
}

FfnNeed ffn_need(const FfnShape& shape, std::int64_t rows_per_expert) {
  const auto experts = static_cast<double>(rows_per_expert > 0 ? shape.experts : 0);
  const double rows = static_cast<double>(rows_per_expert) * experts;
  const auto hidden = static_cast<double>(shape.hidden), ffn = static_cast<double>(shape.ffn);
  const auto weight = static_cast<double>(bytes_of(shape.dtype)),
             element = static_cast<double>(bytes_of(row_dtype(shape.dtype)));
  // x, gate beside up written and read, the activated rows written and read, y.
  const double row_elements = hidden + 2 * 2 * ffn + 2 * ffn + hidden;
  return {.bytes = weight * experts * 3 * hidden * ffn + element * rows * row_elements,
          .flops = 6 * hidden * ffn * rows};
}

std::vector<FfnTime> time_kernel(Backend& backend, const FfnShape& shape, const std::string& kernel,
                                 const std::vector<std::int64_t>& rows_per_expert,
                                 int repetitions) {
  std::vector<FfnTime> times;
  for (const std::int64_t rows : rows_per_expert) {
    times.push_back({.kernel = kernel, .rows_per_expert = rows, .median_s = {}, .refusal = {}});
  }
  const GroupedGemmEntry& entry = GroupedGemmCatalog::instance().at(kernel);
  std::string refusal;
  for (const GemmShape& gemm : {Ffn::gate_up_shape(shape), Ffn::down_shape(shape)}) {
    if (const auto reason = entry.refuses(gemm)) refusal = *reason;
  }
  std::unique_ptr<Ffn> ffn;
  for (FfnTime& time : times) {
    try {
      if (refusal.empty() && ffn == nullptr) {
        ffn = std::make_unique<Ffn>(backend, shape, kernel, std::ranges::max(rows_per_expert));
      }
      if (refusal.empty()) ffn->time(time, repetitions);
    } catch (const Error& error) {
      time.refusal = error.what();
      continue;
    }
    time.refusal = refusal;
  }
  return times;
}

void run_in_range(Backend& backend, const FfnShape& shape, const std::string& kernel,
                  std::int64_t rows_per_expert) {
  FfnTime once{.kernel = kernel, .rows_per_expert = rows_per_expert, .median_s = {}, .refusal = {}};
  Ffn(backend, shape, kernel, rows_per_expert).profile(once);
}

}  // namespace epsweep
