#include "cuda/optional/cutlass_kernel.h"

namespace epsweep::cuda {

// Bound by reading weights. 64 outputs instead of 128 make twice the blocks, which a rank with few
// experts needs to keep all multiprocessors reading.
const CutlassTile* cutlass_few_rows() {
  return CutlassKernel<cute::Shape<cute::_64, cute::_16, cute::_128>,
                       cute::Shape<cute::_1, cute::_1, cute::_1>>::tile();
}

}  // namespace epsweep::cuda
