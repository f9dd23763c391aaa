// A layer on the CUDA backend gives what it gives on the CPU backend, at every EP size, whatever is
// exchanged, wherever experts lie, whichever router, transport and kernel.
#include <cmath>

#include <gtest/gtest.h>

#include "base/bfloat16.h"
#include "hostcuda/layer_run.h"
#include "hostcuda/stream_queue.h"

namespace epsweep {
namespace {

struct BackendRun {
  LayerOutputs outputs;
  Seen seen;
};

BackendRun run_on(const std::string& backend_name, const SweepPoint& point) {
  EpGroup group = group_of(point.ep_size);
  BackendRun run;
  SeeingBackend backend(backend_name, run.seen);
  OpenTransport transport(point.transport, group);
  const GemmMaker make_gemm = [&](const GemmShape& shape) -> std::unique_ptr<GroupedGemm> {
    return std::make_unique<SeenGemm>(catalog_gemm(point)(shape), shape, backend, run.seen);
  };
  run.outputs = run_layers(point, group.ep_rank(), *transport, make_gemm, backend);
  transport.close();
  group.close();
  return run;
}

std::vector<float> values_of(const std::vector<std::byte>& bytes, DType dtype) {
  std::vector<float> values(bytes.size() / static_cast<std::size_t>(bytes_of(dtype)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (dtype == DType::fp32) {
      std::memcpy(&values[i], bytes.data() + 4 * i, 4);
    } else {
      std::uint16_t half;
      std::memcpy(&half, bytes.data() + 2 * i, 2);
      values[i] = float_of_bf16(half);
    }
  }
  return values;
}

// max over rows and columns of |got - want| / rms(want row), as the oracle measures; NaN counts as
// infinite.
double worst_error(std::span<const float> got, std::span<const float> want, std::size_t cols) {
  double worst = got.size() == want.size() ? 0 : INFINITY;
  for (std::size_t row = 0; row + cols <= got.size() && worst < INFINITY; row += cols) {
    double squares = 0, difference = 0;
    for (std::size_t c = row; c < row + cols; ++c) {
      squares += static_cast<double>(want[c]) * static_cast<double>(want[c]);
      const double here = std::abs(static_cast<double>(got[c]) - static_cast<double>(want[c]));
      difference = std::isnan(here) ? INFINITY : std::max(difference, here);
    }
    if (difference > 0) {
      worst = std::max(worst, difference / std::sqrt(squares / static_cast<double>(cols)));
    }
  }
  return worst;
}

// Router weights: expf and the logarithms of both sides are right to a few units in the last place,
// a sum of 12 scores adds as many; 2^-18.
constexpr double kWeightTolerance = 4e-6;
// fp32: the activation's expf, and sums of 32 products in other orders. bf16: as the oracle's, a
// value that lies between two numbers of the dtype may go to either.
double output_tolerance(DType dtype) {
  return dtype == DType::fp32 ? 4e-6 : Oracle::tolerance(dtype);
}

void expect_equal_routing(const BackendRun& cuda, const BackendRun& cpu) {
  EXPECT_TRUE(cuda.outputs.counts_match);
  EXPECT_EQ(cuda.outputs.own_choice, cpu.outputs.own_choice);
  ASSERT_EQ(cuda.seen.router_weights.size(), cpu.seen.router_weights.size());
  for (std::size_t layer = 0; layer < cpu.seen.router_weights.size(); ++layer) {
    const std::vector<float>&got = cuda.seen.router_weights[layer],
          &want = cpu.seen.router_weights[layer];
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_NEAR(got[i], want[i], kWeightTolerance * static_cast<double>(want[i])) << i;
    }
  }
}

// Tokens and weights are odd multiples, up to 255, of a power of two: a sum of 64 products is a
// whole number of 22 bits, so any order of adding gives the same bits, and rows before the
// activation show that exchange, order and products are the same.
void expect_equal_rows(const SweepPoint& point, const BackendRun& cuda, const BackendRun& cpu) {
  ASSERT_EQ(cuda.seen.gemms.size(), cpu.seen.gemms.size());
  for (std::size_t i = 0; i < cpu.seen.gemms.size(); ++i) {
    const GemmSeen &got = cuda.seen.gemms[i], &want = cpu.seen.gemms[i];
    EXPECT_EQ(got.rows_per_expert, want.rows_per_expert) << i;
    if (i % 2 == 0) {
      EXPECT_EQ(got.in, want.in) << "permuted rows " << i;
      EXPECT_EQ(got.out, want.out) << "gate and up " << i;
    } else {
      const auto cols = static_cast<std::size_t>(point.model.expert_io_dim);
      EXPECT_LT(
          worst_error(values_of(got.out, point.dtype), values_of(want.out, point.dtype), cols),
          output_tolerance(point.dtype))
          << "down " << i;
    }
  }
}

// Returns whether the CUDA backend can run the point at all.
bool expect_equal(const SweepPoint& cuda_point) {
  const auto cuda_backend = BackendCatalog::instance().at("cuda").make({.num_threads = 1});
  if (!can_run(cuda_point, *cuda_backend, mpi_world().rank() % cuda_point.ep_size)) return false;
  SweepPoint cpu_point = cuda_point;
  cpu_point.transport = "pairwise";
  cpu_point.grouped_gemm = "reference";
  const BackendRun cpu = run_on("cpu", cpu_point);
  hostcuda::set_seed(static_cast<unsigned long long>(mpi_world().rank()));
  const BackendRun cuda = run_on("cuda", cuda_point);
  SCOPED_TRACE(point_label(cuda_point) + " " + cuda_point.transport + " " +
               cuda_point.grouped_gemm + " " + placement_label(cuda_point) + " " +
               std::string(to_string(cuda_point.dtype)) + " " +
               to_string(cuda_point.exchange_unit));
  expect_equal_routing(cuda, cpu);
  expect_equal_rows(cuda_point, cuda, cpu);
  const auto cols = static_cast<std::size_t>(cuda_point.model.expert_io_dim);
  for (std::size_t layer = 0; layer < cpu.outputs.of_layer.size(); ++layer) {
    EXPECT_LT(worst_error(cuda.outputs.of_layer[layer], cpu.outputs.of_layer[layer], cols),
              output_tolerance(cuda_point.dtype));
  }
  return true;
}

SweepPoint cuda_point(int ep_size) {
  SweepPoint point = layer_point(ep_size, 11);
  point.transport = "nccl_sendrecv";
  point.grouped_gemm = "cublaslt_loop";
  return point;
}

std::vector<int> ep_sizes() {
  std::vector<int> sizes;
  for (int size = 1; size <= mpi_world().size(); ++size) {
    if (mpi_world().size() % size == 0) sizes.push_back(size);
  }
  return sizes;
}

struct Placing {
  std::string policy;
  int redundant_slots;
};

// With replicas of some experts, and with as many slots again as there are ranks.
std::vector<Placing> placings(const SweepPoint& point) {
  const int ranks = point.ep_size, experts = point.model.num_experts;
  std::vector<Placing> all = {{"contiguous", 0}, {"random", 0}};
  const int least = (ranks - experts % ranks) % ranks;
  if (ranks > 1) all.push_back({"eplb", std::min(least + ranks, experts * (ranks - 1))});
  return all;
}

// Every score, with and without what may go with it.
std::vector<RouterShape> router_families() {
  using S = Scoring;
  return {{.scoring = S::softmax},
          {.scoring = S::softmax, .renormalize = true, .selection_bias = true},
          {.scoring = S::softmax, .scale = 16, .num_groups = 4, .topk_groups = 2},
          {.scoring = S::topk_softmax, .renormalize = true},
          {.scoring = S::sigmoid},
          {.scoring = S::sigmoid,
           .renormalize = true,
           .scale = 2.5,
           .num_groups = 4,
           .topk_groups = 2,
           .selection_bias = true},
          {.scoring = S::sqrtsoftplus, .renormalize = true, .scale = 1.5, .selection_bias = true}};
}

std::vector<SweepPoint> units_and_dtypes(SweepPoint point) {
  std::vector<SweepPoint> points;
  for (const ExchangeUnit unit : {ExchangeUnit::assignment, ExchangeUnit::rank}) {
    for (const DType dtype : {DType::bf16, DType::fp32}) {
      point.exchange_unit = unit;
      point.dtype = dtype;
      points.push_back(point);
    }
  }
  return points;
}

// Everything where one group has all ranks; a part, another one at each size, where several groups
// stand side by side: other numbers of ranks run those sizes alone.
TEST(CudaLayer, equals_the_cpus_for_every_unit_placement_dtype_and_router) {
  int turn = 0;
  for (const int ep_size : ep_sizes()) {
    const int every = ep_size == mpi_world().size() ? 1 : 5;
    for (const RouterShape& router : router_families()) {
      SweepPoint point = cuda_point(ep_size);
      point.model.router = router;
      ASSERT_FALSE(find_router_problem(point.model));
      for (const Placing& placing : placings(point)) {
        point.placement = placing.policy;
        point.redundant_slots = placing.redundant_slots;
        for (const SweepPoint& one : units_and_dtypes(point)) {
          if (turn++ % every == 0) {
            EXPECT_TRUE(expect_equal(one));
          }
        }
      }
    }
  }
}

TEST(CudaLayer, equals_the_cpus_for_every_transport) {
  for (const std::string& transport : names_for<TransportCatalog>("cuda")) {
    int run = 0;
    for (const int ep_size : ep_sizes()) {
      SweepPoint point = cuda_point(ep_size);
      point.transport = transport;
      point.placement = "round_robin";
      point.layers = 2;
      for (const SweepPoint& one : units_and_dtypes(point)) {
        if (ep_size < mpi_world().size() && one.dtype == DType::fp32) continue;
        run += expect_equal(one) ? 1 : 0;
      }
    }
    EXPECT_GE(run, 2) << transport;
  }
}

TEST(CudaLayer, equals_the_cpus_for_every_grouped_gemm) {
  int taken = 0;
  for (const std::string& gemm : names_for<GroupedGemmCatalog>("cuda")) {
    for (const DType dtype : {DType::bf16, DType::fp32}) {
      SweepPoint point = cuda_point(mpi_world().size());
      point.concurrency.tokens = 40;
      point.grouped_gemm = gemm;
      point.dtype = dtype;
      taken += expect_equal(point) ? 1 : 0;
    }
  }
  EXPECT_GE(taken, 4);
}

// No tokens on a rank, none at all, all to three experts, two-matrix experts with a latent width.
TEST(CudaLayer, equals_the_cpus_at_the_edges) {
  const auto ranks = static_cast<std::size_t>(mpi_world().size());
  SweepPoint point = cuda_point(mpi_world().size());
  point.concurrency.mode = ConcurrencyMode::listed;
  point.concurrency.tokens_per_rank.assign(ranks, 3);
  point.concurrency.tokens_per_rank.back() = 0;
  for (const SweepPoint& one : units_and_dtypes(point)) expect_equal(one);
  point.concurrency.tokens_per_rank.assign(ranks, 0);
  for (const SweepPoint& one : units_and_dtypes(point)) expect_equal(one);
  point.concurrency.tokens_per_rank.assign(ranks, 5);
  point.routing = {
      .distribution = "k_hot", .params = {{"num_hot", 3}, {"hot_fraction", 1.0}}, .file = {}};
  point.model.expert_io_dim = 16;
  point.model.gemms_per_expert = 2;
  for (const SweepPoint& one : units_and_dtypes(point)) expect_equal(one);
}

}  // namespace
}  // namespace epsweep
