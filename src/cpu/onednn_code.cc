#include "cpu/onednn_code.h"

#include <map>
#include <mutex>
#include <tuple>

#include "base/error.h"

namespace epsweep::onednn {
namespace {

// Row count whose favourite layout all row counts get.
constexpr std::int64_t kLayoutRows = 32;

struct KeyLess {
  bool operator()(const CodeKey& a, const CodeKey& b) const {
    return std::tie(a.cols, a.k, a.rows, a.dtype, a.layout) <
           std::tie(b.cols, b.k, b.rows, b.dtype, b.layout);
  }
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
  std::unique_ptr<Code> last_resort;
  for (const Operation operation : {Operation::matmul, Operation::inner_product}) {
    std::unique_ptr<Code> code = try_compile(operation, key, packed);
    if (code && !is_reference(code->implementation)) return code;
    if (code && !last_resort) last_resort = std::move(code);
  }
  if (!last_resort) throw RunError("oneDNN has no matrix product for this shape and layout");
  return last_resort;
}

}  // namespace

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

dnnl::primitive_attr own_scratch() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

memory::desc panel_layout(std::int64_t cols, std::int64_t k, DType dtype) {
  const auto tag =
      dtype == DType::bf16 ? memory::format_tag::BA16a32b2a : memory::format_tag::BA16a32b;
  const memory::desc panels({k, cols}, type_of(dtype), tag);
  try {
    if (!is_reference(matmul_of({cols, k, kLayoutRows, dtype}, panels).impl_info_str())) {
      return panels.permute_axes({1, 0});
    }
  } catch (const dnnl::error&) {
  }
  return {};
}

memory::desc own_layout(std::int64_t cols, std::int64_t k, DType dtype) {
  return inner_product_of({cols, k, kLayoutRows, dtype},
                          {{cols, k}, type_of(dtype), memory::format_tag::any})
      .weights_desc();
}

std::shared_ptr<const Code> cached_code(const CodeKey& key, const memory::desc& packed) {
  static std::mutex mutex;
  static std::map<CodeKey, std::shared_ptr<const Code>, KeyLess> codes;
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

}  // namespace epsweep::onednn
