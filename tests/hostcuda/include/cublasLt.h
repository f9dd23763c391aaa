// The toolkit's cublasLt.h, and where it is older than grouped layouts, what cuBLAS 13.2 added to
// it.
#pragma once

#include_next <cublasLt.h>

#if CUBLAS_VERSION < 130200
extern "C" cublasStatus_t cublasLtGroupedMatrixLayoutCreate(cublasLtMatrixLayout_t* layout,
                                                            cudaDataType type, int groups,
                                                            const void* rows, const void* cols,
                                                            const void* leading);
constexpr auto CUBLASLT_MATMUL_PREF_GROUPED_AVERAGE_REDUCTION_DIM =
    static_cast<cublasLtMatmulPreferenceAttributes_t>(13);
constexpr auto CUBLASLT_MATMUL_PREF_GROUPED_DESC_D_AVERAGE_ROWS =
    static_cast<cublasLtMatmulPreferenceAttributes_t>(14);
constexpr auto CUBLASLT_MATMUL_PREF_GROUPED_DESC_D_AVERAGE_COLS =
    static_cast<cublasLtMatmulPreferenceAttributes_t>(15);
#endif
