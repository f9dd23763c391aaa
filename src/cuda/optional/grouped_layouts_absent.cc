// Where cublasLt.h is older than grouped layouts.
#include "base/error.h"
#include "cuda/optional/grouped_layouts.h"

namespace epsweep::cuda {

bool has_grouped_layouts() {
  return false;
}

MatrixLayout make_grouped_layout(cudaDataType_t, int, const GroupDims&) {
  throw RunError("this build has no grouped layouts of cuBLASLt");
}

void set_mean_dims(cublasLtMatmulPreference_t, const MeanDims&) {}

}  // namespace epsweep::cuda
