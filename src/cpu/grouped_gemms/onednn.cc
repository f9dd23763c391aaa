// oneDNN 2.x behind PackedGemm. Every call runs on one thread; OpenMP is told so per calling thread
// (omp_set_num_threads is thread-local), because a barrier inside a product of half a millisecond
// costs ten times that when another rank holds the core.
#include <dnnl.hpp>
#include <omp.h>

#include "base/error.h"
#include "cpu/cache_flush.h"
#include "cpu/cpu_backend.h"
#include "cpu/grouped_gemms/packed_gemm.h"
#include "cpu/grouped_gemms/packed_grouped_gemm.h"

namespace epsweep {
namespace {

using dnnl::memory;

// Row count whose favourite layout all row counts get.
constexpr std::int64_t kLayoutRows = 32;
constexpr std::int64_t kAlignment = 64;

class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

const dnnl::engine& cpu_engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

memory::data_type type_of(DType dtype) {
  return dtype == DType::bf16 ? memory::data_type::bf16 : memory::data_type::f32;
}

memory::desc matrix(std::int64_t rows, std::int64_t cols, DType dtype) {
  return {{rows, cols}, type_of(dtype), memory::format_tag::ab};
}

// Scratch is ours, one per worker. The library's own belongs to the primitive: two threads inside
// one primitive then corrupt each other's results without any error.
dnnl::primitive_attr own_scratch() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

struct CodeKey {
  std::int64_t cols = 0, k = 0, rows = 0;
  DType dtype = DType::bf16;
  bool operator<(const CodeKey& other) const {
    return std::tie(cols, k, rows, dtype) < std::tie(other.cols, other.k, other.rows, other.dtype);
  }
};

enum class Operation : int { inner_product, matmul };

// A compiled product and how it wants its weights described: inner_product as [n][k], matmul as
// [k][n]. The bytes are the same.
struct Code {
  Operation operation = Operation::inner_product;
  dnnl::primitive primitive;
  std::int64_t scratch_bytes = 0;
  std::string implementation;
};

dnnl::inner_product_forward::primitive_desc inner_product_of(const CodeKey& key,
                                                             const memory::desc& weights) {
  const dnnl::inner_product_forward::desc operation(dnnl::prop_kind::forward_inference,
                                                    matrix(key.rows, key.k, key.dtype), weights,
                                                    matrix(key.rows, key.cols, key.dtype));
  return {operation, own_scratch(), cpu_engine()};
}

dnnl::matmul::primitive_desc matmul_of(const CodeKey& key, const memory::desc& weights) {
  const dnnl::matmul::desc operation(matrix(key.rows, key.k, key.dtype), weights,
                                     matrix(key.rows, key.cols, key.dtype));
  return {operation, own_scratch(), cpu_engine()};
}

bool is_reference(const std::string& implementation) {
  return implementation.rfind("ref", 0) == 0;
}

// As [n][k]. bf16 is packed in blocks of 32 columns, not the 64 oneDNN would choose: measured with
// cold weights, at 8 rows 0.85 of the read bandwidth against 0.74, at 128 rows 1.15x faster, at 512
// equal. fp32, and CPUs without that code, get what inner_product wants for kLayoutRows.
memory::desc packed_layout(std::int64_t cols, std::int64_t k, DType dtype) {
  const CodeKey key{cols, k, kLayoutRows, dtype};
  if (dtype == DType::bf16) {
    const memory::desc blocks_of_32({k, cols}, type_of(dtype), memory::format_tag::BA16a32b2a);
    try {
      if (!is_reference(matmul_of(key, blocks_of_32).impl_info_str())) {
        return blocks_of_32.permute_axes({1, 0});
      }
    } catch (const dnnl::error&) {
    }
  }
  return inner_product_of(key, {{cols, k}, type_of(dtype), memory::format_tag::any}).weights_desc();
}

template <typename Primitive, typename PrimitiveDesc>
std::unique_ptr<Code> code_of(Operation operation, const PrimitiveDesc& desc) {
  const auto scratch_bytes = static_cast<std::int64_t>(desc.scratchpad_desc().get_size());
  return std::make_unique<Code>(
      Code{operation, Primitive(desc), scratch_bytes, desc.impl_info_str()});
}

// No code where oneDNN has none for this layout.
std::unique_ptr<Code> try_compile(Operation operation, const CodeKey& key,
                                  const memory::desc& packed) {
  try {
    return operation == Operation::matmul
               ? code_of<dnnl::matmul>(operation, matmul_of(key, packed.permute_axes({1, 0})))
               : code_of<dnnl::inner_product_forward>(operation, inner_product_of(key, packed));
  } catch (const dnnl::error&) {
    return nullptr;
  }
}

// Reference implementations, slower by orders of magnitude, are the last resort.
std::shared_ptr<const Code> compile(const CodeKey& key, const memory::desc& packed) {
  std::array order = {Operation::inner_product, Operation::matmul};
  if (key.dtype == DType::bf16) std::swap(order[0], order[1]);
  std::unique_ptr<Code> last_resort;
  for (const Operation operation : order) {
    std::unique_ptr<Code> code = try_compile(operation, key, packed);
    if (code && !is_reference(code->implementation)) return code;
    if (code && !last_resort) last_resort = std::move(code);
  }
  if (!last_resort) throw RunError("oneDNN has no matrix product for this shape and layout");
  return last_resort;
}

// The layout follows from (cols, k, dtype), so the key need not hold it.
std::shared_ptr<const Code> cached_code(const CodeKey& key, const memory::desc& packed) {
  static std::mutex mutex;
  static std::map<CodeKey, std::shared_ptr<const Code>> codes;
  const std::lock_guard lock(mutex);
  std::shared_ptr<const Code>& code = codes[key];
  if (!code) code = compile(key, packed);
  return code;
}

void check(dnnl_status_t status, const char* what) {
  if (status != dnnl_success) {
    throw RunError(std::string("oneDNN: ") + what + " failed with status " +
                   std::to_string(static_cast<int>(status)));
  }
}

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

// An expert's weights lie in panels of kPanelCols columns, each packed by itself and the last one
// perhaps narrower, so that calls over any number of panels read the same copy.
struct PackedGemm::State {
  State(const GemmShape& given, int num_workers);
  const memory::desc& layout_of(std::int64_t cols);
  void reserve_scratch(std::int64_t bytes);

  GemmShape shape;
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
  const std::int64_t panels = shape.n / kPanelCols, tail = shape.n % kPanelCols;
  if (panels > 0) panel_bytes = static_cast<std::int64_t>(layout_of(kPanelCols).get_size());
  expert_bytes = panels * panel_bytes;
  if (tail > 0) expert_bytes += static_cast<std::int64_t>(layout_of(tail).get_size());
  expert_bytes = (expert_bytes + kAlignment - 1) / kAlignment * kAlignment;
  reserve_scratch(kAlignment);
}

const memory::desc& PackedGemm::State::layout_of(std::int64_t cols) {
  const auto found = layouts.find(cols);
  if (found != layouts.end()) return found->second;
  const memory::desc layout = packed_layout(cols, shape.k, shape.dtype);
  const bool usable =
      cols <= kPanelCols ||
      (cols % kPanelCols == 0 && stacks(layout_of(kPanelCols), layout, cols / kPanelCols));
  return layouts[cols] = usable ? layout : memory::desc();
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

void PackedGemm::pack(const WeightSource& source) {
  State& state = *state_;
  const OneThread one_thread;
  const GemmShape& shape = state.shape;
  state.weights = make_cpu_buffer(shape.num_experts * state.expert_bytes);
  Buffer plain = make_cpu_buffer(std::min(kPanelCols, shape.n) * shape.k * bytes_of(shape.dtype));
  dnnl::stream stream(cpu_engine());
  auto* place = static_cast<std::byte*>(state.weights.data());
  for (int expert = 0; expert < shape.num_experts; ++expert, place += state.expert_bytes) {
    for (std::int64_t col = 0; col < shape.n; col += kPanelCols) {
      const std::int64_t cols = std::min(kPanelCols, shape.n - col);
      fill_payload(source(expert), col * shape.k, cols * shape.k, shape.dtype, plain.data());
      memory from(matrix(cols, shape.k, shape.dtype), cpu_engine(), plain.data());
      memory to(state.layout_of(cols), cpu_engine(), place + col / kPanelCols * state.panel_bytes);
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
  entry.code = cached_code({cols, shape.k, rows, shape.dtype}, layout);
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
  std::byte* const weight = static_cast<std::byte*>(state.weights.data()) +
                            expert * state.expert_bytes +
                            first_col / kPanelCols * state.panel_bytes;
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
  flush_from_caches(state_->weights.data(), state_->weights.bytes());
}

std::int64_t PackedGemm::scratch_bytes() const {
  std::int64_t bytes = 0;
  for (const Worker& worker : state_->workers) bytes += worker.scratch.bytes();
  return bytes;
}

std::int64_t PackedGemm::weight_bytes() const {
  return state_->weights.bytes();
}

std::optional<std::string> PackedGemm::refuses(const GemmShape& shape) {
  if (shape.n < 1 || shape.k < 1) return "n and k must be at least 1";
  try {
    const OneThread one_thread;
    packed_layout(std::min(shape.n, kPanelCols), shape.k, shape.dtype);
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
