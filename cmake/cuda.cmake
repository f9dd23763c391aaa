# The CUDA engine is part of the program where its toolkit and NCCL are; EPSWEEP_CUDA=ON insists.
# Found without the toolkit's compiler, its headers still serve tests/hostcuda.
set(EPSWEEP_CUDA AUTO CACHE STRING "Build the CUDA engine: ON, OFF, or AUTO for where nvcc is found")
set(EPSWEEP_CUDA_ARCHITECTURES "80;90;100" CACHE STRING "GPU architectures to compile for")

find_package(CUDAToolkit QUIET)
# NCCL comes with the toolkit's packages, or with PyPI's nvidia-nccl, which has no libnccl.so.
execute_process(
  COMMAND python3 -c "import nvidia.nccl; print(list(nvidia.nccl.__path__)[0])"
  OUTPUT_VARIABLE epsweep_python_nccl
  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ${epsweep_python_nccl}/include)
find_library(
  NCCL_LIBRARY
  NAMES nccl libnccl.so.2
  HINTS ${CUDAToolkit_LIBRARY_DIR} ${epsweep_python_nccl}/lib)

set(epsweep_cuda_missing)
if(NOT CUDAToolkit_FOUND)
  list(APPEND epsweep_cuda_missing "the CUDA toolkit (nvcc on PATH, or CUDAToolkit_ROOT)")
endif()
if(CUDAToolkit_FOUND AND NOT TARGET CUDA::cublasLt)
  list(APPEND epsweep_cuda_missing "cuBLAS (cublasLt.h and libcublasLt of the CUDA toolkit)")
endif()
if(NOT NCCL_INCLUDE_DIR OR NOT NCCL_LIBRARY)
  list(APPEND epsweep_cuda_missing "NCCL (nccl.h and libnccl; NCCL_INCLUDE_DIR, NCCL_LIBRARY)")
endif()

set(EPSWEEP_WITH_CUDA OFF)
if(EPSWEEP_CUDA STREQUAL "OFF")
  message(STATUS "CUDA engine: not built (EPSWEEP_CUDA=OFF)")
elseif(NOT epsweep_cuda_missing)
  set(EPSWEEP_WITH_CUDA ON)
  message(STATUS "CUDA engine: toolkit ${CUDAToolkit_VERSION}, NCCL in ${NCCL_INCLUDE_DIR}")
elseif(EPSWEEP_CUDA STREQUAL "ON")
  list(JOIN epsweep_cuda_missing "; " epsweep_cuda_missing)
  message(FATAL_ERROR "EPSWEEP_CUDA=ON, but not found: ${epsweep_cuda_missing}")
else()
  list(JOIN epsweep_cuda_missing "; " epsweep_cuda_missing)
  message(STATUS "CUDA engine: not built, not found: ${epsweep_cuda_missing}")
endif()

# cuBLASLt's grouped layouts came with cuBLAS 13.2.
set(EPSWEEP_WITH_GROUPED_LAYOUTS OFF)
if(EPSWEEP_WITH_CUDA)
  foreach(folder IN LISTS CUDAToolkit_INCLUDE_DIRS)
    if(EXISTS ${folder}/cublasLt.h)
      file(STRINGS ${folder}/cublasLt.h epsweep_grouped_layouts
           REGEX "cublasLtGroupedMatrixLayoutCreate" LIMIT_COUNT 1)
      if(epsweep_grouped_layouts)
        set(EPSWEEP_WITH_GROUPED_LAYOUTS ON)
      endif()
      break()
    endif()
  endforeach()
  if(NOT EPSWEEP_WITH_GROUPED_LAYOUTS)
    message(STATUS "cuBLASLt: its header has no grouped layouts, cublaslt_grouped will say so")
  endif()
endif()

if(EPSWEEP_WITH_CUDA)
  add_library(epsweep_cuda_libraries INTERFACE)
  # SYSTEM: the toolkit's headers do not pass our warnings.
  target_include_directories(epsweep_cuda_libraries SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS}
                                                                     ${NCCL_INCLUDE_DIR})
  # What programs link. NCCL and cuBLAS open the driver when they are first used, so a program starts
  # without one.
  add_library(epsweep_cuda_runtime INTERFACE)
  target_link_libraries(epsweep_cuda_runtime INTERFACE CUDA::cudart CUDA::cublas CUDA::cublasLt
                                                       ${NCCL_LIBRARY} ${CMAKE_DL_LIBS})
  # All of the engine, for the executables that name it.
  set(EPSWEEP_CUDA_ENGINE epsweep_cuda epsweep_cuda_kernels epsweep_cutlass epsweep_cuda_runtime)
  if(NOT CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_ARCHITECTURES ${EPSWEEP_CUDA_ARCHITECTURES})
  endif()
  enable_language(CUDA)
endif()
