#include "cuda/optional/grouped_layouts.h"

#include "cuda/matmul.h"

namespace epsweep::cuda {

bool has_grouped_layouts() {
  return true;
}

MatrixLayout make_grouped_layout(cudaDataType_t type, int num_groups, const GroupDims& dims) {
  cublasLtMatrixLayout_t raw = nullptr;
  check(
      cublasLtGroupedMatrixLayoutCreate(&raw, type, num_groups, dims.rows, dims.cols, dims.leading),
      "cublasLtGroupedMatrixLayoutCreate");
  return MatrixLayout(raw);
}

// The header's comments call these attributes uint32_t; the library (13.10.0) takes eight bytes and
// refuses four.
void set_mean_dims(cublasLtMatmulPreference_t preference, const MeanDims& mean) {
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, std::int64_t value) {
    check(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(value)),
          "cublasLtMatmulPreferenceSetAttribute(GROUPED_..._AVERAGE)");
  };
  set(CUBLASLT_MATMUL_PREF_GROUPED_DESC_D_AVERAGE_ROWS, mean.rows);
  set(CUBLASLT_MATMUL_PREF_GROUPED_DESC_D_AVERAGE_COLS, mean.cols);
  set(CUBLASLT_MATMUL_PREF_GROUPED_AVERAGE_REDUCTION_DIM, mean.summed);
}

}  // namespace epsweep::cuda
