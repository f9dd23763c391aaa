// What kernels over plain [n][k] matrices have in common: their weights may be others' too.
#pragma once

#include <memory>
#include <utility>

#include "cuda/expert_matrices.h"
#include "device/grouped_gemm.h"

namespace epsweep::cuda {

// Of a row of x (k elements) or y (n) as run() gets them.
inline std::int64_t x_row_bytes(const GemmShape& shape) {
  return shape.k * bytes_of(row_dtype(shape.dtype));
}
inline std::int64_t y_row_bytes(const GemmShape& shape) {
  return shape.n * bytes_of(row_dtype(shape.dtype));
}

// A kernel that derives from this is a candidate of `auto`.
class SharedWeightsGemm : public GroupedGemm {
 public:
  void prepare(const WeightSource& source) override {
    auto own = std::make_shared<ExpertMatrices>(shape_);
    own->load(source);
    weights_ = std::move(own);
  }
  // Instead of prepare(): weights of the same shape, loaded.
  void share(std::shared_ptr<const ExpertMatrices> weights) { weights_ = std::move(weights); }

  void flush_weights() override { flush_device_cache(); }
  std::int64_t weight_bytes() const override { return ExpertMatrices(shape_).bytes(); }

 protected:
  explicit SharedWeightsGemm(const GemmShape& shape) : shape_(shape) {}

  const GemmShape& shape() const { return shape_; }
  const ExpertMatrices& weights() const { return *weights_; }
  std::int64_t x_row_bytes() const { return cuda::x_row_bytes(shape_); }
  std::int64_t y_row_bytes() const { return cuda::y_row_bytes(shape_); }

 private:
  GemmShape shape_;
  std::shared_ptr<const ExpertMatrices> weights_;
};

}  // namespace epsweep::cuda
