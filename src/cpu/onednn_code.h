// oneDNN 2.x: compiled matrix products and how they want their weights. Every call runs on one
// thread; OpenMP is told so per calling thread (omp_set_num_threads is thread-local), because a
// barrier inside a product of half a millisecond costs ten times that when another rank holds the
// core.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <dnnl.hpp>
#include <omp.h>

#include "base/dtype.h"

namespace epsweep::onednn {

using dnnl::memory;

class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

const dnnl::engine& cpu_engine();
memory::data_type type_of(DType dtype);
// Row-major.
memory::desc matrix(std::int64_t rows, std::int64_t cols, DType dtype);

// Scratch is ours, one per worker. The library's own belongs to the primitive: two threads inside
// one primitive then corrupt each other's results without any error.
dnnl::primitive_attr own_scratch();

// Whose layout the weights have: that of WeightPanels or oneDNN's own.
enum class Layout : int { panels, own };

struct CodeKey {
  std::int64_t cols = 0, k = 0, rows = 0;
  DType dtype = DType::bf16;
  Layout layout = Layout::panels;
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

// As [n][k], what WeightPanels holds. In blocks of 32 columns, not the 64 oneDNN would choose for
// bf16: measured with cold weights, at 8 rows 0.85 of the read bandwidth against 0.74, at 128 rows
// 1.15x faster, at 512 equal. Empty where oneDNN has only slow code for it.
memory::desc panel_layout(std::int64_t cols, std::int64_t k, DType dtype);
// What inner_product wants for a few rows. Throws dnnl::error if it has no code.
memory::desc own_layout(std::int64_t cols, std::int64_t k, DType dtype);

// Compiled once per process. The layout of the weights follows from the key.
std::shared_ptr<const Code> cached_code(const CodeKey& key, const memory::desc& packed);

// RunError naming what failed.
void check(dnnl_status_t status, const char* what);

}  // namespace epsweep::onednn
