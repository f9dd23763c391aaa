// oneDNN behind PackedGemm.
#include "base/error.h"
#include "cpu/cache_flush.h"
#include "cpu/cpu_backend.h"
#include "cpu/grouped_gemms/packed_gemm.h"
#include "cpu/grouped_gemms/packed_grouped_gemm.h"
#include "cpu/onednn_code.h"

namespace epsweep {
namespace {

using namespace onednn;

constexpr std::int64_t kAlignment = 64;

// Memory objects hold a pointer, so every worker needs its own three.
struct Ready {
  std::shared_ptr<const Code> code;
  std::vector<memory> x, weights, y;
};

struct Worker {
  dnnl::stream stream{cpu_engine()};
  Buffer scratch;
  memory scratch_memory;
};

// Whether `count` matrices of layout `one` behind each other are one matrix of layout `many`.
bool stacks(const memory::desc& one, const memory::desc& many, std::int64_t count) {
  if (one.data.format_kind != dnnl_blocked || many.data.format_kind != dnnl_blocked) return false;
  const dnnl_blocking_desc_t& a = one.data.format_desc.blocking;
  const dnnl_blocking_desc_t& b = many.data.format_desc.blocking;
  return static_cast<std::int64_t>(many.get_size()) ==
             count * static_cast<std::int64_t>(one.get_size()) &&
         a.inner_nblks == b.inner_nblks &&
         std::equal(a.inner_blks, a.inner_blks + a.inner_nblks, b.inner_blks) &&
         std::equal(a.inner_idxs, a.inner_idxs + a.inner_nblks, b.inner_idxs) &&
         std::equal(a.strides, a.strides + 2, b.strides);
}

}  // namespace

// Where they are not WeightPanels, an expert's weights lie in panels of kPanelCols columns, each
// packed by itself and the last one perhaps narrower, so that calls over any number of panels read
// the same copy.
struct PackedGemm::State {
  State(const GemmShape& given, int num_workers);
  memory::desc packed_layout(std::int64_t cols) const;
  const memory::desc& layout_of(std::int64_t cols);
  std::byte* weights_at(int expert, std::int64_t first_col);
  void reserve_scratch(std::int64_t bytes);

  GemmShape shape;
  bool takes_panels = false;
  std::shared_ptr<const WeightPanels> panels;
  std::int64_t panel_bytes = 0, expert_bytes = 0;
  Buffer weights;
  std::vector<Worker> workers;
  // By columns; empty where oneDNN lays out that many differently from their panels.
  std::map<std::int64_t, memory::desc> layouts;
  std::map<std::pair<std::int64_t, std::int64_t>, Ready> ready;  // by rows and columns
};

PackedGemm::State::State(const GemmShape& given, int num_workers)
    : shape(given), workers(static_cast<std::size_t>(num_workers)) {
  const OneThread one_thread;
  const std::int64_t full_panels = shape.n / kPanelCols, tail = shape.n % kPanelCols;
  takes_panels = (full_panels == 0 || !panel_layout(kPanelCols, shape.k, shape.dtype).is_zero()) &&
                 (tail == 0 || !panel_layout(tail, shape.k, shape.dtype).is_zero());
  if (full_panels > 0) panel_bytes = static_cast<std::int64_t>(layout_of(kPanelCols).get_size());
  expert_bytes = full_panels * panel_bytes;
  if (tail > 0) expert_bytes += static_cast<std::int64_t>(layout_of(tail).get_size());
  expert_bytes = (expert_bytes + kAlignment - 1) / kAlignment * kAlignment;
  reserve_scratch(kAlignment);
}

memory::desc PackedGemm::State::packed_layout(std::int64_t cols) const {
  return takes_panels ? panel_layout(cols, shape.k, shape.dtype)
                      : own_layout(cols, shape.k, shape.dtype);
}

const memory::desc& PackedGemm::State::layout_of(std::int64_t cols) {
  const auto found = layouts.find(cols);
  if (found != layouts.end()) return found->second;
  const memory::desc layout = packed_layout(cols);
  const bool usable =
      cols <= kPanelCols || (cols % kPanelCols == 0 && !layout.is_zero() &&
                             stacks(layout_of(kPanelCols), layout, cols / kPanelCols));
  return layouts[cols] = usable ? layout : memory::desc();
}

std::byte* PackedGemm::State::weights_at(int expert, std::int64_t first_col) {
  if (takes_panels) {
    return const_cast<std::byte*>(panels->panel(expert, first_col / WeightPanels::kPanelWidth));
  }
  return static_cast<std::byte*>(weights.data()) + expert * expert_bytes +
         first_col / kPanelCols * panel_bytes;
}

void PackedGemm::State::reserve_scratch(std::int64_t bytes) {
  for (Worker& worker : workers) {
    if (worker.scratch.bytes() >= bytes) continue;
    worker.scratch = make_cpu_buffer(bytes);
    worker.scratch_memory = memory({{bytes}, memory::data_type::u8, memory::format_tag::a},
                                   cpu_engine(), worker.scratch.data());
  }
}

PackedGemm::PackedGemm(const GemmShape& shape, int num_workers)
    : state_(std::make_unique<State>(shape, num_workers)) {}
PackedGemm::~PackedGemm() = default;

bool PackedGemm::takes_panels() const {
  return state_->takes_panels;
}

void PackedGemm::share(std::shared_ptr<const WeightPanels> weights) {
  EPS_EXPECT(state_->takes_panels, "oneDNN has a layout of its own for these weights");
  state_->panels = std::move(weights);
}

void PackedGemm::pack(const WeightSource& source, ThreadPool& pool) {
  State& state = *state_;
  const GemmShape& shape = state.shape;
  if (state.takes_panels) {
    auto own = std::make_shared<WeightPanels>(shape);
    own->load(source, pool);
    return share(std::move(own));
  }
  const OneThread one_thread;
  state.weights = make_cpu_buffer(shape.num_experts * state.expert_bytes);
  Buffer plain = make_cpu_buffer(std::min(kPanelCols, shape.n) * shape.k * bytes_of(shape.dtype));
  dnnl::stream stream(cpu_engine());
  for (int expert = 0; expert < shape.num_experts; ++expert) {
    for (std::int64_t col = 0; col < shape.n; col += kPanelCols) {
      const std::int64_t cols = std::min(kPanelCols, shape.n - col);
      fill_payload(source(expert), col * shape.k, cols * shape.k, shape.dtype, plain.data());
      memory from(matrix(cols, shape.k, shape.dtype), cpu_engine(), plain.data());
      memory to(state.layout_of(cols), cpu_engine(), state.weights_at(expert, col));
      dnnl::reorder(from, to).execute(stream, from, to);
      stream.wait();
    }
  }
}

bool PackedGemm::can_call(std::int64_t cols) {
  const OneThread one_thread;
  return !state_->layout_of(cols).is_zero();
}

void PackedGemm::warm(std::int64_t rows, std::int64_t cols) {
  State& state = *state_;
  if (state.ready.count({rows, cols}) != 0) return;
  const OneThread one_thread;
  const GemmShape& shape = state.shape;
  const memory::desc& layout = state.layout_of(cols);
  Ready entry;
  entry.code = cached_code(
      {cols, shape.k, rows, shape.dtype, state.takes_panels ? Layout::panels : Layout::own},
      layout);
  const bool transposed = entry.code->operation == Operation::matmul;
  for (std::size_t worker = 0; worker < state.workers.size(); ++worker) {
    entry.x.emplace_back(matrix(rows, shape.k, shape.dtype), cpu_engine(), nullptr);
    entry.weights.emplace_back(transposed ? layout.permute_axes({1, 0}) : layout, cpu_engine(),
                               nullptr);
    entry.y.emplace_back(matrix(rows, cols, shape.dtype), cpu_engine(), nullptr);
  }
  state.reserve_scratch(entry.code->scratch_bytes);
  state.ready.emplace(std::pair(rows, cols), std::move(entry));
}

// The C calls: the C++ ones build a hash table and a vector every time. Setting a handle also
// zeroes the layout's padding; a panel belongs to one worker at a time, so nobody reads it
// meanwhile.
void PackedGemm::multiply(int worker, int expert, std::int64_t first_col, std::int64_t cols,
                          std::int64_t rows, const void* x, void* y) {
  State& state = *state_;
  const OneThread one_thread;
  const auto index = static_cast<std::size_t>(worker);
  Ready& entry = state.ready.at({rows, cols});
  Worker& own = state.workers[index];
  std::byte* const weight = state.weights_at(expert, first_col);
  const std::array<dnnl_exec_arg_t, 4> arguments = {{
      {DNNL_ARG_SRC, entry.x[index].get()},
      {DNNL_ARG_WEIGHTS, entry.weights[index].get()},
      {DNNL_ARG_DST, entry.y[index].get()},
      {DNNL_ARG_SCRATCHPAD, own.scratch_memory.get()},
  }};
  check(dnnl_memory_set_data_handle(arguments[0].memory, const_cast<void*>(x)), "setting x");
  check(dnnl_memory_set_data_handle(arguments[1].memory, weight), "setting weights");
  check(dnnl_memory_set_data_handle(arguments[2].memory, y), "setting y");
  check(dnnl_primitive_execute(entry.code->primitive.get(), own.stream.get(),
                               static_cast<int>(arguments.size()), arguments.data()),
        "a matrix product");
}

void PackedGemm::flush() {
  if (state_->takes_panels) return state_->panels->flush();
  flush_from_caches(state_->weights.data(), state_->weights.bytes());
}

std::int64_t PackedGemm::scratch_bytes() const {
  std::int64_t bytes = 0;
  for (const Worker& worker : state_->workers) bytes += worker.scratch.bytes();
  return bytes;
}

std::int64_t PackedGemm::weight_bytes() const {
  return state_->takes_panels ? state_->panels->bytes() : state_->weights.bytes();
}

std::optional<std::string> PackedGemm::refuses(const GemmShape& shape) {
  if (shape.n < 1 || shape.k < 1) return "n and k must be at least 1";
  try {
    const OneThread one_thread;
    own_layout(std::min(shape.n, kPanelCols), shape.k, shape.dtype);
  } catch (const dnnl::error&) {
    return std::string("oneDNN has no ") + std::string(to_string(shape.dtype)) +
           " matrix product for this CPU";
  }
  return std::nullopt;
}

namespace {

std::unique_ptr<GroupedGemm> make(const GemmShape& shape, int num_threads) {
  return std::make_unique<PackedGroupedGemm>(shape, num_threads, ExpertOrder::together);
}

const bool registered = GroupedGemmCatalog::instance().add(
    {.name = "onednn",
     .backend = "cpu",
     .summary = "oneDNN products over all (expert, column slice) items, packed weights",
     .refuses = PackedGemm::refuses,
     .make = make});

}  // namespace
}  // namespace epsweep
